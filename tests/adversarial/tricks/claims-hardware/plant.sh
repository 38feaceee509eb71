set_report cuda_available true
set_report gpu_count 8
set_report ddp_expected_ok true
