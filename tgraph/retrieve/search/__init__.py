"""Search methods, plus each method's ranked orders, used by why-not."""
