import gamma
