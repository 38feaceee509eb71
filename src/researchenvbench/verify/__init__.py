"""Phase 2: judge a frozen environment, level by level."""
