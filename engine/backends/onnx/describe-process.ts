import { messageOf } from '../../../base/error-text.js';
import { describedValues, type OnnxValues, typeProblem } from './describe-onnx.js';
import { onnxFileValues } from './onnx-file.js';
import { openSession } from './onnx-instance.js';
import { loadOnnxRuntime } from './onnx-runtime.js';

/** What a process that opens a model answers: its inputs and outputs, or why it cannot be opened. */
export type OnnxDescription = { values: OnnxValues } | { problem: string };

// Opens a model to say what its inputs and outputs are. A file can end the process that opens it, which therefore is not the server's.
const path = process.argv[2]!;
process.on('disconnect', () => process.exit());
process.send!(await describe(path), () => process.disconnect());

async function describe(file: string): Promise<OnnxDescription> {
  const written = onnxFileValues(file);
  try {
    const session = await openSession(loadOnnxRuntime(), file, 1);
    return { values: describedValues(session, written) };
  } catch (error) {
    const problem = typeProblem(written);
    return { problem: problem === null ? messageOf(error) : `${file}: ${problem}` };
  }
}
