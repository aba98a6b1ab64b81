/** Names of the engines beside Skein, in tables and behind `--only`. */
export const LLAMA = 'llama.cpp';
export const IK_LLAMA = 'ik_llama.cpp';
export const OPENVINO = 'openvino';
export const LLAMA_SERVER = 'llama-server';
export const IK_SERVER = 'ik_llama-server';
