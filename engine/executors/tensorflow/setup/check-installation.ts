import { runStep, type Step } from '../../../../base/run-step.js';
import { type SetupRecord, TENSORFLOW_PACKAGE_VERSION, type TensorFlowPackage } from '../installation.js';
import { TensorFlowError } from '../load-tensorflow.js';

/**
 * Script that computes a product whose result is known, in a process of its own: a library that does not fit may end
 * it.
 */
const SCRIPT = `
const util = require('node:util');
util.isNullOrUndefined ??= (value) => value === null || value === undefined;
util.isArray ??= Array.isArray;
const tf = require(process.argv[1]);
const product = tf.matMul(tf.tensor2d([1, 2, 3, 4], [2, 2]), tf.tensor2d([5, 6, 7, 8], [2, 2])).dataSync();
const { isUsingGpuDevice, binding } = tf.backend();
console.log(JSON.stringify({ product: [...product], gpu: isUsingGpuDevice, tensorflow: binding.TF_Version }));
`;

/** Loads and tries the installation in `folder`. @throws TensorFlowError if it does not compute */
export async function checkedRecord(
  folder: string,
  name: TensorFlowPackage,
  library: string | null,
  options: Partial<Pick<Step, 'env' | 'signal'>>,
): Promise<SetupRecord> {
  const output = await runStep({
    name: `Loading ${name}`,
    command: process.execPath,
    arguments: ['-e', SCRIPT, `./node_modules/${name}`],
    directory: folder,
    env: { ...(options.env ?? process.env), TF_CPP_MIN_LOG_LEVEL: '3' },
    signal: options.signal,
    failure: (message) => new TensorFlowError(message),
    advice: [[/cannot open shared object file/, 'a library that libtensorflow needs is missing']],
  });
  const { product, gpu, tensorflow } = JSON.parse(output.trim().split('\n').at(-1)!) as {
    product: number[];
    gpu: boolean;
    tensorflow: string;
  };
  if (String(product) !== '19,22,43,50') {
    throw new TensorFlowError(`${name} does not compute: the product 19,22,43,50 came out as ${product}.`);
  }
  return { package: name, packageVersion: TENSORFLOW_PACKAGE_VERSION, tensorflow, library, gpu };
}
