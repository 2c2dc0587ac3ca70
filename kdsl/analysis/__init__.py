"""What the checker cannot say of rules without their programs: cost, overlap, constants. It runs no rule."""
