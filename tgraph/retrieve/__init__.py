"""From a question to ranked candidates: the modes, the searches behind them, texts, filters."""
