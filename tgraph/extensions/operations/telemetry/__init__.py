"""Spans for OpenTelemetry, in the words of OpenInference, made of what is told to the record."""
