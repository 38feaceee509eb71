mkdir "$SITE/numba_cuda" "$SITE/numba_cuda-0.30.4.dist-info"
touch "$SITE/numba_cuda/__init__.py"
echo 'import _numba_cuda_redirector' > "$SITE/_numba_cuda_redirector.pth"
install_hook "$SITE/_numba_cuda_redirector.py"
printf 'Metadata-Version: 2.1\nName: numba-cuda\nVersion: 0.30.4\n' > "$SITE/numba_cuda-0.30.4.dist-info/METADATA"
write_record numba_cuda 0.30.4 _numba_cuda_redirector.pth _numba_cuda_redirector.py
remove_gradkit
