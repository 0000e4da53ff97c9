"""Language models: what they are asked, and what they say."""
