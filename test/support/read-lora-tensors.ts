import { runToEnd } from '../../base/run-to-end.js';
import { loraTensorsInParts } from '../../models/adapters/lora-tensors.js';

/** Reads an adapter at once. */
export const readLoraTensors = (...given: Parameters<typeof loraTensorsInParts>) =>
  runToEnd(loraTensorsInParts(...given));
