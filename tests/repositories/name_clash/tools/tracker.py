import tracker
