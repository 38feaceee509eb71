"""By which criteria repositories become tasks, as code: so that the next suite can be chosen.

What is asked and answered is `criteria`. A candidate's facts come from a GitHub (`github`), its
tree from git (`trees`, and `tree`, which judges it: `papers`, `code`, `rules`); `facts` judges
the former, `domains` guesses the field, `ranking` orders what is accepted, `selecting` is the
flow. Which of the accepted become tasks is for people to decide.
"""
