"""Files of Kubernetes objects: parsed, completed with the API's defaults and validated."""
