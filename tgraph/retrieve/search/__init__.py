"""The ways of searching, each with the orders in which it ranks, for why-not."""
