#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/ndarraytypes.h>

static PyObject *add(PyObject *self, PyObject *args) {
  double left, right;
  if (!PyArg_ParseTuple(args, "dd", &left, &right)) return NULL;
  return PyFloat_FromDouble(left + right);
}

static PyMethodDef methods[] = {{"add", add, METH_VARARGS, "Sum of two numbers."},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sum", NULL, -1, methods};

PyMODINIT_FUNC PyInit__sum(void) { return PyModule_Create(&module); }
