/**
 * The operations that tfjs-backend-wasm's products leave to do, on SIMD, in the same heap: compiled by AssemblyScript to
 * dist/engine/executors/wasm/kernels.wasm (tools/build-wasm.mjs). Pointers are byte offsets of that heap; rows lie one after the
 * other unless a stride says otherwise.
 *
 * A row's bits depend on that row alone, as with the native kernels: sums run in four lanes over ascending columns, then across
 * the lanes; no kernel's sums depend on the number of rows. Nothing allocates.
 */
export { attention, attentionScratchBytes, setCache, setRelative, setSinkLogits } from './attention';
export { storeKv } from './cache';
export {
  addShare,
  allFinite,
  capRows,
  clampColumns,
  clampRows,
  finishRows,
  gateRows,
  scaleColumns,
  xieluRows,
} from './elements';
export { copyColumns, layerNorm, layerNormHeads, meanRows, normHeads, rmsNorm, rope, unitRows } from './rows';
export { selectiveScan } from './scan';
export { gateColumns, gatedDelta, shortConv } from './states';
