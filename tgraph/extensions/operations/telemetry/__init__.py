"""OpenTelemetry spans following OpenInference conventions, built from record events."""
