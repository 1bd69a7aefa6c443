"""The box office on the web, for people: pages made here, and small scripts that make them quicker (R2–R30).

Every page works without its scripts. A form is a plain POST to an address of this folder, answered with
"see there"; scripts send the same form. Nothing comes from anywhere else, and nothing runs that is not a
file of ours.

visit.py   cookies, languages, who may send a form     words.py   sentences, money and times for people
store.py   templates, words and files of the package   routes.py  how a page is made and a form is read
browse     what is on                                   seats      choosing them
checkout   hold, pay, tickets, my bookings              account    signing up, in and out
"""
