#!/bin/sh
# Installs Debian's Chromium where that is allowed: as root, with apt-get. Says why if it cannot; that is no failure.
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo 'Chromium is not installed, and there is no apt-get to install it.'
elif [ "$(id -u)" != 0 ]; then
  echo 'Chromium is not installed, and only root may install it: apt-get install chromium'
elif ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
  >/dev/null 2>&1; then
  echo 'Chromium is not installed, and apt-get cannot install it.'
fi
