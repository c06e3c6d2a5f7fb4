"""Why an answer is as it is, from the record alone, room by room."""
