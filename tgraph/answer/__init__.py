"""Answer steps from candidates to finished answers: language-model and embedded variants."""
