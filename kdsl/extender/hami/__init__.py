"""A replacement of HAMi: filter assigns cards, bind locks the node, the webhook completes pods."""
