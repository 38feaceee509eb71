#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *total(PyObject *self, PyObject *values)
{
    PyObject *item, *iterator = PyObject_GetIter(values);
    double sum = 0.0;
    if (iterator == NULL)
        return NULL;
    while ((item = PyIter_Next(iterator)) != NULL) {
        sum += PyFloat_AsDouble(item);
        Py_DECREF(item);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? NULL : PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {{"total", total, METH_O, "The sum of floats."}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};

PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
