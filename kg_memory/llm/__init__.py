"""Chat, embedding and rerank models: prompts, requests, retries, rate limits and budgets."""
