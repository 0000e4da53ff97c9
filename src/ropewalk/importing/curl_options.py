"""What the options of curl mean here: one table, by name."""

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return {name: whole for name, _, whole in (pair.partition("=") for pair in text.split())}


# What each short option is called in full.
SHORT: Final = _pairs(
    """
    X=request H=header d=data F=form u=user G=get I=head A=user-agent e=referer b=cookie L=location m=max-time
    o=output O=remote-name T=upload-file k=insecure x=proxy E=cert s=silent S=show-error v=verbose i=include
    f=fail w=write-out c=cookie-jar g=globoff N=no-buffer n=netrc 4=ipv4 6=ipv6 0=http1.0 #=progress-bar
    J=remote-header-name j=junk-session-cookies R=remote-time C=continue-at r=range D=dump-header U=proxy-user
    K=config q=disable Z=parallel y=speed-time Y=speed-limit z=time-cond
    """
)

# Options that take a value and that are read.
VALUED: Final = _names(
    """
    request header data data-raw data-ascii data-binary data-urlencode json form form-string user oauth2-bearer
    user-agent referer cookie max-time max-redirs url url-query output upload-file aws-sigv4 range
    """
)
# Options that are read and take none.
FLAGS: Final = _names(
    """
    get head location digest basic remote-name
    """
)

# What cannot be done, and why: a node that looks the same and does another thing would be worse than none.
REFUSED: Final = {
    "insecure": "certificates are always checked; have the worker trust the authority that signed this one",
    "proxy": "a worker calls servers itself, behind its own network rules",
    "preproxy": "a worker calls servers itself, behind its own network rules",
    "socks5": "a worker calls servers itself, behind its own network rules",
    "socks5-hostname": "a worker calls servers itself, behind its own network rules",
    "cert": "certificates of clients are not supported",
    "key": "certificates of clients are not supported",
    "unix-socket": "only http and https over the network are allowed",
    "abstract-unix-socket": "only http and https over the network are allowed",
    "resolve": "a host is looked up by the worker",
    "connect-to": "a host is looked up by the worker",
    "config": "another file is not read",
    "netrc": "another file is not read; use a credential",
    "netrc-file": "another file is not read; use a credential",
    "ntlm": "this way to log in is not supported",
    "negotiate": "this way to log in is not supported",
    "next": "give one request at a time",
}

# What says how curl shows or fetches something, and changes nothing of the request.
HARMLESS: Final = _names(
    """
    silent show-error verbose include fail fail-with-body globoff no-buffer progress-bar compressed http1.1
    http2 http2-prior-knowledge ipv4 ipv6 disable no-progress-meter anyauth tlsv1.2 tlsv1.3 http3 remote-time
    remote-header-name junk-session-cookies no-keepalive tcp-nodelay location-trusted path-as-is create-dirs
    styled-output no-styled-output retry-connrefused retry-all-errors ssl-reqd ssl
    """
)
# The same with a value of their own.
HARMLESS_VALUED: Final = _names(
    """
    write-out cookie-jar connect-timeout dump-header keepalive-time trace trace-ascii stderr limit-rate
    speed-time speed-limit interface dns-servers ciphers curves tls-max proto proto-default proto-redir
    max-filesize output-dir expect100-timeout happy-eyeballs-timeout-ms
    """
)
# What has its own word here, which the author must choose.
LEFT_OUT: Final = {
    "retry": "say it as the `retry` of the node",
    "retry-delay": "say it as the `retry` of the node",
    "retry-max-time": "say it as the `retry` of the node",
    "cacert": "have the worker trust this authority",
    "capath": "have the worker trust this authority",
    "pinnedpubkey": "keys are not pinned",
    "continue-at": "a download begins at its beginning",
    "time-cond": "send the header If-Modified-Since yourself",
}
