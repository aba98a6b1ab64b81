// One of the files that are compiled, so that headers are read a few times and not once for each file. Names without linkage differ in
// all that it includes.
#include "convert/convert.cpp"
#include "convert/quantize.cpp"
#include "convert/tensor-types.cpp"
