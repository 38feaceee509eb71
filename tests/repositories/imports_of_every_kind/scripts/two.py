import urllib2
print "two"
