# On the router, with hol as $1. It would reach the server by its other link, if anybody asked it to.
ip route replace 10.0.3.2 dev link2
exec "$1" live route
