"""Everything that can go wrong in a way a user can mend.

```
DraftscopeError
├── SettingError         a parameter is out of range, or a name is unknown
├── PromptError          the prompt is empty, too long, or has ids that the target does not know
├── ModelError           a model cannot be had or cannot be used
│   ├── ModelNotFound    no model of that name, no file at that path
│   ├── ModelFileError   the file is not a GGUF, is cut short, or holds something we do not run
│   ├── BackendError     the backend that was asked for cannot run the model
│   ├── DownloadError    a model could not be fetched
│   ├── VocabularyError  two models do not share their tokens
│   └── ForwardError     a model raised, or gave rows that are not numbers
├── DraftError           a drafter proposed something impossible
├── MissingPackage       an optional package is not installed
├── RunDiffers           a saved run gave another text when it was decoded again
├── RunFileError         a file of runs cannot be read, or is not as it should be
└── StoreError           the run store cannot be read or written
    └── RunNotFound      it has no such run
```

Each message says what was given, what was expected and what to do about it.
"""

__all__ = [
    "BackendError",
    "DownloadError",
    "DraftError",
    "DraftscopeError",
    "ForwardError",
    "MissingPackage",
    "ModelError",
    "ModelFileError",
    "ModelNotFound",
    "PromptError",
    "RunDiffers",
    "RunFileError",
    "RunNotFound",
    "SettingError",
    "StoreError",
    "VocabularyError",
]


class DraftscopeError(Exception):
    """The root: catch this one to catch all that Draftscope raises on purpose."""


class SettingError(DraftscopeError, ValueError):
    """A parameter is out of range, or a name is unknown."""


class PromptError(DraftscopeError, ValueError):
    """The prompt is empty, too long, or has ids that the target does not know."""


class ModelError(DraftscopeError):
    """A model cannot be had or cannot be used."""


class ModelNotFound(ModelError):
    """No model of that name, no file at that path."""


class ModelFileError(ModelError):
    """The file is not a GGUF, is cut short, or holds something that we do not run."""


class BackendError(ModelError):
    """The backend that was asked for cannot run the model."""


class DownloadError(ModelError):
    """A model could not be fetched."""


class VocabularyError(ModelError, ValueError):
    """Two models do not share their tokens."""


class ForwardError(ModelError):
    """A model raised, or gave rows that are not numbers."""


class DraftError(DraftscopeError):
    """A drafter proposed something impossible."""


class MissingPackage(DraftscopeError, ImportError):
    """An optional package is not installed."""


class RunDiffers(DraftscopeError):
    """A saved run gave another text when it was decoded again."""


class RunFileError(DraftscopeError, ValueError):
    """A file of runs cannot be read, or is not as it should be."""


class StoreError(DraftscopeError):
    """The run store cannot be read or written."""


class RunNotFound(StoreError):
    """The store has no such run."""
