// Writes the models that grpc-cases.ts asks into a folder, for a Triton with the Python backend:
//
//     npx tsx tools/reference/triton/write-grpc-models.ts DIR
import { writeGrpcModels } from './grpc-models.js';

const [folder = ''] = process.argv.slice(2);
writeGrpcModels(folder, 'python');
