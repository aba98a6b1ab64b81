// One of the files that are compiled, so that headers are read a few times and not once for each file. Names without linkage differ in
// all that it includes.
#include "convert/convert.cpp"
#include "convert/converted-rows.cpp"
#include "convert/grid-types.cpp"
#include "convert/positioned-file.cpp"
#include "convert/quantize.cpp"
#include "convert/quantized-rows.cpp"
#include "convert/source-rows.cpp"
#include "convert/tensor-types.cpp"
