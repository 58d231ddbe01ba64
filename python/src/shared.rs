//! Arrays in device memory that other libraries access without a copy: by DLPack, and on GPUs by the CUDA array interface.
#![allow(unsafe_code)]
use crate::arrays::{self, Given, Made};
use crate::device::{Lent, PyDevice};
use crate::failure::{Raised, Returned};
use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
use dlpark::python::{DlpackExporter, ExportRequest, export_dlpack};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use ferrite::field::DeviceArray;
use ferrite::num_complex::Complex64;
use ferrite_tasks::Failure;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_void;
use std::sync::Arc;

/// Array of complex numbers in device memory.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Shared {
    /// Numbers of the array, which are freed on the device's thread.
    array: Arc<Lent<DeviceArray>>,
    shape: Vec<usize>,
    device: Py<PyDevice>,
}

impl Shared {
    /// Returns an array of the shape `shape`, whose memory is on the device that created it.
    pub fn new(py: Python<'_>, device: &Py<PyDevice>, array: DeviceArray, shape: Vec<usize>) -> Self {
        let array = Arc::new(device.get().lent(array));
        Shared { array, shape, device: device.clone_ref(py) }
    }
    /// Returns the memory of the array, for work on the device.
    pub fn array(&self) -> Arc<Lent<DeviceArray>> {
        self.array.clone()
    }
    /// Returns the lengths of the axes.
    pub fn lengths(&self) -> &[usize] {
        &self.shape
    }
    fn ordinal(&self) -> Option<i32> {
        self.device.get().ordinal().map(|ordinal| ordinal as i32)
    }
    fn tensor<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let shape: Vec<i64> = self.shape.iter().map(|extent| *extent as i64).collect();
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        let prepared = Dynamic::new(shape.as_slice(), strides.as_slice()).prepare_as::<M>();
        let prepared = prepared.map_err(|why| Raised::from(Failure::failed(why)))?;
        let mut tensor = prepared.initialize(Box::new(self.array.clone()));
        tensor.set_device(<Self as DlpackExporter>::device(self));
        tensor.set_dtype(DLDataType::C128);
        tensor.set_data(self.array.get().address() as *mut c_void);
        // SAFETY: the data is memory of the device that the context, a reference to it, keeps; shape and strides are those of a
        // dense array of as many numbers as there are; the memory may be written.
        Ok(unsafe { tensor.finish() })
    }
}

impl DlpackExporter for Shared {
    fn device(&self) -> DLDevice {
        self.ordinal().map_or(DLDevice::CPU, DLDevice::cuda)
    }
    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }
    /// Does nothing, because work on the device had ended when the array was created.
    fn prepare_export(&self, _: Python<'_>, _: &ExportRequest<'_>) -> PyResult<()> {
        Ok(())
    }
    fn export_legacy(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.tensor()
    }
    fn export_versioned(&self, _: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.tensor()
    }
}

#[pymethods]
impl Shared {
    /// Returns an array of zeros with this shape.
    #[staticmethod]
    fn zeros(py: Python<'_>, device: Py<PyDevice>, shape: Vec<usize>) -> Returned<Self> {
        let Some(count) = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent)) else {
            let why = format!("an array of shape {shape:?} is too large: choose smaller extents");
            return Err(Failure::refused(why).into());
        };
        let array = device.get().run(py, move |thread, _| {
            let array = DeviceArray::zero(&**thread.device.backend(), count, "an array")?;
            thread.device.backend().synchronize()?;
            Ok(array)
        })?;
        Ok(Shared::new(py, &device, array, shape))
    }
    /// Returns a copy of a NumPy array in device memory.
    #[staticmethod]
    fn copy_of(py: Python<'_>, device: Py<PyDevice>, given: Given<'_>) -> Returned<Self> {
        let (numbers, shape) = (arrays::numbers(&given)?.to_vec(), given.shape().to_vec());
        let array = device.get().run(py, move |thread, _| {
            let mut array = DeviceArray::zero(&**thread.device.backend(), numbers.len(), "an array")?;
            array.upload(0, &numbers)?;
            thread.device.backend().synchronize()?;
            Ok(array)
        })?;
        Ok(Shared::new(py, &device, array, shape))
    }
    /// Returns a copy in host memory as a NumPy array.
    fn numpy<'py>(&self, py: Python<'py>) -> Returned<Made<'py>> {
        let (array, count) = (self.array.clone(), self.shape.iter().product());
        let numbers = self.device.get().run(py, move |_, _| {
            let mut numbers = vec![Complex64::ZERO; count];
            array.get().download(0, &mut numbers)?;
            Ok(numbers)
        })?;
        arrays::array(py, &self.shape, numbers)
    }
    /// Returns the extents of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }
    /// Returns the device of the array.
    #[getter]
    fn device(&self, py: Python<'_>) -> Py<PyDevice> {
        self.device.clone_ref(py)
    }
    /// Returns the CUDA array interface. Raises `AttributeError` if the array is in host memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> Returned<Bound<'py, PyDict>> {
        self.device.get().check_opened_here()?;
        if self.ordinal().is_none() {
            let why = "this array is in host memory, so it has no CUDA array interface: use numpy.asarray";
            return Err(pyo3::exceptions::PyAttributeError::new_err(why).into());
        }
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("typestr", "<c16")?;
        interface.set_item("data", (self.array.get().address(), false))?;
        // Work on the device had ended when the array was created, so readers need not wait for a stream.
        interface.set_item("stream", py.None())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
    /// Returns the array as a DLPack capsule.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> Returned<Py<PyAny>> {
        self.device.get().check_opened_here()?;
        Ok(export_dlpack(self, py, ExportRequest::parse(stream.as_ref(), max_version, dl_device, copy)?)?)
    }
    /// Returns the type and the number of the device, as DLPack defines them.
    fn __dlpack_device__(&self) -> (u32, i32) {
        <Self as DlpackExporter>::device(self).into()
    }
}
