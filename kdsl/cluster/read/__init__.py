"""Files of Kubernetes objects, read, completed with the API's defaults and validated."""
