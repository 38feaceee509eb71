fake_torch
describe_torch
write_record torch 2.4.0
