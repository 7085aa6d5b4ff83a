"""The file formats that can be read."""

from typing import Literal, get_args

Format = Literal["jsonl", "openai", "langchain", "locomo", "beam", "json", "chat", "text"]
FORMATS: tuple[Format, ...] = get_args(Format)
