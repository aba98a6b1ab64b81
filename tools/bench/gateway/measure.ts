/** Measures one gateway, and prints its costs: started by bench.ts, as JavaScript. */
import { type GatewayLoad, measureGateway } from './load.js';

const load = JSON.parse(process.argv[2]!) as GatewayLoad;
process.stdout.write(JSON.stringify(await measureGateway(load)));
