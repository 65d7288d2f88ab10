"""The examination of a recovered reward: experiments on changed demonstrations, and warnings with advice."""
