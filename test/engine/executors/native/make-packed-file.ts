// Makes and closes an executor of the engine in the JSON file named on the command line.
import { readFileSync } from 'node:fs';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { executorOptions } from '../../../support/native-options.js';

new NativeExecutor(JSON.parse(readFileSync(process.argv[2]!, 'utf8')), executorOptions()).close();
