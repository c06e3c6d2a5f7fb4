"""Questions that a query over knowledge answers: from words to a query, and to its witnesses."""
