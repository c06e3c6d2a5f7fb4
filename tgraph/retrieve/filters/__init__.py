"""What a question may be answered from, and the copy of the state that this leaves."""
