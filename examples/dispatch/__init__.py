"""Ride dispatch: the second customer of `holdfast.claim` (R41). README.md in this folder explains it.

    riders, phones, cars ──SQL──► ledger (PostgreSQL) ◄──SQL── workers ──claims──► Valkey

Workers alone claim drivers. Everything else reads and writes the ledger.
"""
