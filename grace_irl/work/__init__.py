"""Parallel work: executors run jobs on this machine or on others. A job is the name of a function and its arguments."""

from grace_irl.work.executor import Executor, Job, JobError, JobFuture, Tell
from grace_irl.work.folder import FolderExecutor
from grace_irl.work.local import LocalExecutor
from grace_irl.work.workplace import Workplace

__all__ = ["Executor", "FolderExecutor", "Job", "JobError", "JobFuture", "LocalExecutor", "Tell", "Workplace"]
