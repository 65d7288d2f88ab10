"""Spreads work: jobs by name and plain data, done by an executor on this machine or on others."""

from grace_irl.work.executor import Executor, Job, JobError, JobFuture, Tell
from grace_irl.work.local import LocalExecutor

__all__ = ["Executor", "Job", "JobError", "JobFuture", "LocalExecutor", "Tell"]
