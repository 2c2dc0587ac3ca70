"""What a running scheduler tells about itself: metrics and logs. It listens, and never changes a decision."""
