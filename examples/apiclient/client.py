"""Sends requests to an API with rate limits, and obeys them."""

import email.utils
import random
import re
import threading
import time
import urllib.error
import urllib.request

TRIES = 4  # how often a request is sent at most
LONGEST = 60  # seconds; a longer wait is left to the caller

# The methods of requests that do no harm when they are sent twice.
REPEATABLE = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}


class Client:
    """Sends requests not before the API wants them. Use one for all requests of a key."""

    def __init__(self):
        self._lock = threading.Lock()
        self._not_before = 0.0

    def open(self, request):
        """Sends a urllib.request.Request. If the API refuses it for now, open waits and sends it again."""
        again = request.get_method() in REPEATABLE and (request.data is None or isinstance(request.data, bytes))
        for attempt in range(1, TRIES + 1):
            while (left := self._not_before - time.monotonic()) > 0:
                time.sleep(left)
            try:
                response = urllib.request.urlopen(request)
            except urllib.error.HTTPError as error:
                response = error
            wait = wait_after(response, attempt)
            self._pause(wait)
            if response.status not in (429, 503) or not again or attempt == TRIES or wait > LONGEST:
                return response
            response.close()

    def _pause(self, wait):
        """Delays the next requests, a little longer than asked for, so that not all clients come back at once."""
        if 0 < wait <= LONGEST:
            at = time.monotonic() + wait * random.uniform(1.05, 1.2)
            with self._lock:
                self._not_before = max(self._not_before, at)


def wait_after(response, attempt):
    """Returns how many seconds to wait before the next request: 0 if there is no need to."""
    after = response.headers.get("Retry-After", "")
    if after.isdigit():
        return int(after)
    date = timestamp(after)
    if date is not None:
        now = timestamp(response.headers.get("Date"))  # by the clock of the API
        return date - (time.time() if now is None else now)
    used = re.search(r";r=0;t=(\d+)", response.headers.get("RateLimit", ""))
    if used:
        return int(used[1])
    return 2 ** (attempt - 1) if response.status in (429, 503) else 0  # it does not say when


def timestamp(text):
    """Returns the time of an HTTP date, or None."""
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None
