touch "$(printf 'data/mu\337ter.csv')" "$(printf 'a\nb c.txt')"
