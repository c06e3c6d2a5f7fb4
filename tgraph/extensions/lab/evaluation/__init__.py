"""Evaluation: answers judged against expected answers by RAGChecker's metrics."""
