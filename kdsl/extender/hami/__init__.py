"""HAMi's place: filter gives cards and writes them down, bind locks the node, the webhook fills pods in."""
