/**
 * What the products leave to do, on SIMD, in the heap that tfjs-backend-wasm computes them in: compiled by
 * AssemblyScript to dist/engine/executors/wasm/kernels.wasm (tools/build-wasm.mjs). Pointers are byte offsets of that heap; rows
 * lie one after the other unless a stride says otherwise.
 *
 * A row's bits depend on that row alone, as with the native kernels: sums run in four lanes over ascending columns, then
 * across the lanes; nothing here knows how many rows there are. Nothing allocates.
 */
export { attention, attentionScratchBytes, setCache } from './attention';
export { storeKv } from './cache';
export { allFinite, capRows, finishRows, gateRows } from './elements';
export { copyColumns, layerNorm, meanRows, normHeads, rmsNorm, rope, unitRows } from './rows';
