{
  # One static library per instruction set, so that only its own file is compiled with its flags and no shared inline
  # function of a standard header can leak wider instructions into code that runs everywhere.
  "variables": {
    "openssl_fips": "",
    "common_cflags": ["-std=c++20", "-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-fvisibility=hidden"]
  },
  "target_defaults": {
    "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-fno-exceptions", "-fno-rtti"],
    "cflags_cc": ["<@(common_cflags)"],
    "include_dirs": ["engine/executors/native"],
    "xcode_settings": {
      "CLANG_CXX_LANGUAGE_STANDARD": "c++20",
      "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
      "GCC_OPTIMIZATION_LEVEL": "3",
      "OTHER_CPLUSPLUSFLAGS": ["-ffp-contract=off"],
      "MACOSX_DEPLOYMENT_TARGET": "12.0"
    }
  },
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "skein_avx2",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/avx2.cpp"],
          "cflags_cc": ["-mavx2", "-mfma", "-mf16c"]
        },
        {
          "target_name": "skein_avxvnni",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/avxvnni.cpp"],
          "cflags_cc": ["-mavx2", "-mfma", "-mf16c"]
        },
        {
          "target_name": "skein_avx512",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/avx512.cpp"],
          "cflags_cc": ["-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mprefer-vector-width=512"]
        },
        {
          "target_name": "skein_avx512vnni",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/avx512vnni.cpp"],
          "cflags_cc": ["-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mprefer-vector-width=512"]
        },
        {
          "target_name": "skein_avx512bf16",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/avx512bf16.cpp"],
          "cflags_cc": ["-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mavx512bf16", "-mprefer-vector-width=512"]
        },
        {
          "target_name": "skein_amx",
          "type": "static_library",
          "sources": [
            "engine/executors/native/kernels/amx.cpp",
            "<!@(node -p \"['engine/executors/native/kernels/emulated_amx_vectors.cpp'].filter(require('fs').existsSync).join()\")"
          ],
          "cflags_cc": ["-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mavx512bf16", "-mavx512vbmi", "-mprefer-vector-width=512"]
        }
      ]
    }],
    ["target_arch=='arm64'", {
      # Tiles take nearly all registers, and GCC's first scheduling pass moves loads so far ahead of their use that accumulators no longer
      # fit: they were stored and loaded in every step. A flag and no pragma: with the pragma GCC 12 drops the bodies of lambdas that are
      # called by pointer.
      "targets": [
        {
          "target_name": "skein_neon",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/neon.cpp"],
          "cflags_cc": ["-fno-schedule-insns"]
        },
        {
          "target_name": "skein_neondot",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/neondot.cpp"],
          "cflags_cc": ["-fno-schedule-insns", "-march=armv8.2-a+dotprod"],
          "xcode_settings": { "OTHER_CPLUSPLUSFLAGS": ["-ffp-contract=off", "-march=armv8.2-a+dotprod"] }
        },
        {
          "target_name": "skein_neoni8mm",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/neoni8mm.cpp"],
          "cflags_cc": ["-fno-schedule-insns", "-march=armv8.2-a+dotprod+i8mm"],
          "xcode_settings": { "OTHER_CPLUSPLUSFLAGS": ["-ffp-contract=off", "-march=armv8.2-a+dotprod+i8mm"] }
        },
        {
          "target_name": "skein_neonbf16",
          "type": "static_library",
          "sources": ["engine/executors/native/kernels/neonbf16.cpp"],
          "cflags_cc": ["-fno-schedule-insns", "-march=armv8.2-a+dotprod+bf16"],
          "xcode_settings": { "OTHER_CPLUSPLUSFLAGS": ["-ffp-contract=off", "-march=armv8.2-a+dotprod+bf16"] }
        }
      ]
    }]
  ],
  "targets": [
    # Vectors in plain C++ call fmaf() for each lane: what the last level of optimisation adds there is two thirds of the time to compile.
    # Files named emulated*, for the tests alone, are not part of the package.
    {
      "target_name": "skein_plain",
      "type": "static_library",
      "sources": [
        "engine/executors/native/kernels/scalar.cpp",
        "<!@(node -p \"['emulated.cpp','emulated_amx.cpp','emulated_tile_traps.cpp'].map((name)=>'engine/executors/native/kernels/'+name).filter(require('fs').existsSync).join('\\n')\")"
      ],
      "cflags_cc": ["-O2"],
      "xcode_settings": { "GCC_OPTIMIZATION_LEVEL": "2" },
      "conditions": [["target_arch=='arm64'", { "defines": ["SKEIN_ARM64"] }]]
    },
    {
      "target_name": "skein",
      "sources": [
        "<!@(node -p \"require('fs').readdirSync('engine/executors/native/units').map((name)=>'engine/executors/native/units/'+name).join('\\n')\")"
      ],
      "dependencies": ["skein_plain"],
      "include_dirs": ["<!@(node -p \"require('node-addon-api').include\")"],
      "defines": ["NAPI_VERSION=9", "NODE_ADDON_API_CPP_EXCEPTIONS", "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"],
      "conditions": [
        ["target_arch=='x64'", {
          "dependencies": ["skein_avx2", "skein_avxvnni", "skein_avx512", "skein_avx512vnni", "skein_avx512bf16", "skein_amx"],
          "defines": ["SKEIN_X64"]
        }],
        ["target_arch=='arm64'", {
          "dependencies": ["skein_neon", "skein_neondot", "skein_neoni8mm", "skein_neonbf16"],
          "defines": ["SKEIN_ARM64"]
        }],
        ["OS=='linux'", { "libraries": ["-pthread"] }]
      ]
    }
  ]
}
