	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	.amdhsa_code_object_version 6
	.text
	.type	gemm,@function
gemm:
	s_load_dwordx4 s[8:11], s[0:1], 0x0
	s_load_dwordx2 s[14:15], s[0:1], 0x10
	s_load_dwordx2 s[12:13], s[0:1], 0x1c
	s_mov_b32 s4, s2
	v_readfirstlane_b32 s0, v0
	s_ashr_i32 s5, s4, 31
	s_lshr_b32 s2, s0, 6
	s_lshl_b64 s[0:1], s[4:5], 8
	s_waitcnt lgkmcnt(0)
	s_ashr_i32 s23, s13, 31
	s_mul_i32 s6, s0, s23
	s_mul_hi_u32 s7, s0, s13
	s_lshr_b64 s[4:5], s[4:5], 24
	s_add_i32 s6, s7, s6
	s_mul_i32 s4, s4, s13
	s_add_i32 s5, s6, s4
	s_mul_i32 s4, s0, s13
	;;#ASMSTART
	s_nop 4
	;;#ASMEND
	s_ashr_i32 s17, s2, 2
	s_and_b32 s16, s2, 3
	s_lshl_b64 s[4:5], s[4:5], 1
	v_bfe_u32 v1, v0, 3, 3
	s_add_u32 s4, s8, s4
	v_lshl_or_b32 v2, s2, 3, v1
	v_bitop3_b32 v1, v1, v0, 7 bitop3:0x78
	s_addc_u32 s5, s9, s5
	v_mul_lo_u32 v2, s13, v2
	v_lshlrev_b32_e32 v1, 4, v1
	s_lshl_b32 s18, s2, 10
	s_lshl_b32 s6, s13, 9
	s_and_b32 s5, s5, 0xffff
	s_mov_b32 s7, 0x27000
	v_lshl_add_u32 v134, v2, 1, v1
	s_mov_b32 m0, s18
	s_lshl_b32 s19, s13, 7
	buffer_load_dwordx4 v134, s[4:7], 0 offen lds
	s_add_i32 m0, s18, 0x2000
	s_lshl_b32 s20, s13, 8
	buffer_load_dwordx4 v134, s[4:7], s19 offen lds
	s_add_i32 m0, s18, 0x4000
	s_mul_hi_i32 s9, s3, s13
	s_mul_i32 s8, s3, s13
	buffer_load_dwordx4 v134, s[4:7], s20 offen lds
	s_add_i32 m0, s18, 0x6000
	s_lshl_b64 s[8:9], s[8:9], 9
	s_add_u32 s8, s10, s8
	s_mul_i32 s21, s13, 0x180
	s_addc_u32 s2, s11, s9
	buffer_load_dwordx4 v134, s[4:7], s21 offen lds
	s_and_b32 s9, s2, 0xffff
	s_mov_b32 s10, s6
	s_mov_b32 s11, s7
	s_add_i32 m0, s18, 0x10000
	v_and_b32_e32 v128, 15, v0
	buffer_load_dwordx4 v134, s[8:11], 0 offen lds
	s_add_i32 m0, s18, 0x12000
	v_bfe_u32 v129, v0, 4, 2
	buffer_load_dwordx4 v134, s[8:11], s19 offen lds
	s_add_i32 m0, s18, 0x14000
	v_lshlrev_b32_e32 v2, 7, v128
	buffer_load_dwordx4 v134, s[8:11], s20 offen lds
	s_add_i32 m0, s18, 0x16000
	v_and_b32_e32 v1, 7, v0
	buffer_load_dwordx4 v134, s[8:11], s21 offen lds
	v_lshl_or_b32 v3, s17, 14, v2
	v_lshl_or_b32 v2, s16, 13, v2
	v_bitop3_b32 v0, v129, v0, 7 bitop3:0x78
	s_lshr_b32 s2, s23, 26
	v_or_b32_e32 v2, 0x10000, v2
	v_lshlrev_b32_e32 v0, 4, v0
	s_add_i32 s2, s13, s2
	v_or_b32_e32 v133, v3, v0
	v_or_b32_e32 v132, v2, v0
	v_bitop3_b32 v0, v129, v1, 4 bitop3:0x36
	s_ashr_i32 s2, s2, 6
	v_lshlrev_b32_e32 v0, 4, v0
	s_add_i32 s2, s2, -1
	v_or_b32_e32 v131, v3, v0
	v_or_b32_e32 v130, v2, v0
	s_mov_b32 s22, 0
	s_cmpk_lt_i32 s13, 0x80
	s_movk_i32 s13, 0x80
	s_cbranch_scc1 .LBB0_3
	s_max_i32 s23, s2, 1
	v_mov_b32_e32 v124, 0
	v_mov_b32_e32 v125, 0
	v_mov_b32_e32 v126, 0
	v_mov_b32_e32 v127, 0
	v_mov_b32_e32 v120, 0
	v_mov_b32_e32 v121, 0
	v_mov_b32_e32 v122, 0
	v_mov_b32_e32 v123, 0
	v_mov_b32_e32 v116, 0
	v_mov_b32_e32 v117, 0
	v_mov_b32_e32 v118, 0
	v_mov_b32_e32 v119, 0
	v_mov_b32_e32 v112, 0
	v_mov_b32_e32 v113, 0
	v_mov_b32_e32 v114, 0
	v_mov_b32_e32 v115, 0
	v_mov_b32_e32 v108, 0
	v_mov_b32_e32 v109, 0
	v_mov_b32_e32 v110, 0
	v_mov_b32_e32 v111, 0
	v_mov_b32_e32 v104, 0
	v_mov_b32_e32 v105, 0
	v_mov_b32_e32 v106, 0
	v_mov_b32_e32 v107, 0
	v_mov_b32_e32 v100, 0
	v_mov_b32_e32 v101, 0
	v_mov_b32_e32 v102, 0
	v_mov_b32_e32 v103, 0
	v_mov_b32_e32 v96, 0
	v_mov_b32_e32 v97, 0
	v_mov_b32_e32 v98, 0
	v_mov_b32_e32 v99, 0
	v_mov_b32_e32 v92, 0
	v_mov_b32_e32 v93, 0
	v_mov_b32_e32 v94, 0
	v_mov_b32_e32 v95, 0
	v_mov_b32_e32 v88, 0
	v_mov_b32_e32 v89, 0
	v_mov_b32_e32 v90, 0
	v_mov_b32_e32 v91, 0
	v_mov_b32_e32 v84, 0
	v_mov_b32_e32 v85, 0
	v_mov_b32_e32 v86, 0
	v_mov_b32_e32 v87, 0
	v_mov_b32_e32 v80, 0
	v_mov_b32_e32 v81, 0
	v_mov_b32_e32 v82, 0
	v_mov_b32_e32 v83, 0
	v_mov_b32_e32 v76, 0
	v_mov_b32_e32 v77, 0
	v_mov_b32_e32 v78, 0
	v_mov_b32_e32 v79, 0
	v_mov_b32_e32 v72, 0
	v_mov_b32_e32 v73, 0
	v_mov_b32_e32 v74, 0
	v_mov_b32_e32 v75, 0
	v_mov_b32_e32 v68, 0
	v_mov_b32_e32 v69, 0
	v_mov_b32_e32 v70, 0
	v_mov_b32_e32 v71, 0
	v_mov_b32_e32 v64, 0
	v_mov_b32_e32 v65, 0
	v_mov_b32_e32 v66, 0
	v_mov_b32_e32 v67, 0
	v_mov_b32_e32 v60, 0
	v_mov_b32_e32 v61, 0
	v_mov_b32_e32 v62, 0
	v_mov_b32_e32 v63, 0
	v_mov_b32_e32 v56, 0
	v_mov_b32_e32 v57, 0
	v_mov_b32_e32 v58, 0
	v_mov_b32_e32 v59, 0
	v_mov_b32_e32 v52, 0
	v_mov_b32_e32 v53, 0
	v_mov_b32_e32 v54, 0
	v_mov_b32_e32 v55, 0
	v_mov_b32_e32 v48, 0
	v_mov_b32_e32 v49, 0
	v_mov_b32_e32 v50, 0
	v_mov_b32_e32 v51, 0
	v_mov_b32_e32 v44, 0
	v_mov_b32_e32 v45, 0
	v_mov_b32_e32 v46, 0
	v_mov_b32_e32 v47, 0
	v_mov_b32_e32 v40, 0
	v_mov_b32_e32 v41, 0
	v_mov_b32_e32 v42, 0
	v_mov_b32_e32 v43, 0
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v37, 0
	v_mov_b32_e32 v38, 0
	v_mov_b32_e32 v39, 0
	v_mov_b32_e32 v32, 0
	v_mov_b32_e32 v33, 0
	v_mov_b32_e32 v34, 0
	v_mov_b32_e32 v35, 0
	v_mov_b32_e32 v28, 0
	v_mov_b32_e32 v29, 0
	v_mov_b32_e32 v30, 0
	v_mov_b32_e32 v31, 0
	v_mov_b32_e32 v24, 0
	v_mov_b32_e32 v25, 0
	v_mov_b32_e32 v26, 0
	v_mov_b32_e32 v27, 0
	v_mov_b32_e32 v20, 0
	v_mov_b32_e32 v21, 0
	v_mov_b32_e32 v22, 0
	v_mov_b32_e32 v23, 0
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v17, 0
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, 0
	v_mov_b32_e32 v14, 0
	v_mov_b32_e32 v15, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	s_mov_b32 s10, s6
	s_mov_b32 s11, s7
.LBB0_2:
	s_and_b32 s24, s22, 0x8000
	s_xor_b32 s25, s24, 0x8000
	s_add_i32 s25, s18, s25
	s_mov_b32 m0, s25
	s_add_i32 s26, s19, s13
	buffer_load_dwordx4 v134, s[4:7], s13 offen lds
	s_add_i32 m0, s25, 0x2000
	s_add_i32 s27, s20, s13
	buffer_load_dwordx4 v134, s[4:7], s26 offen lds
	s_add_i32 m0, s25, 0x4000
	s_add_i32 s28, s21, s13
	buffer_load_dwordx4 v134, s[4:7], s27 offen lds
	s_add_i32 m0, s25, 0x6000
	s_nop 0
	buffer_load_dwordx4 v134, s[4:7], s28 offen lds
	s_add_i32 m0, s25, 0x10000
	s_nop 0
	buffer_load_dwordx4 v134, s[8:11], s13 offen lds
	s_add_i32 m0, s25, 0x12000
	s_nop 0
	buffer_load_dwordx4 v134, s[8:11], s26 offen lds
	s_add_i32 m0, s25, 0x14000
	s_nop 0
	buffer_load_dwordx4 v134, s[8:11], s27 offen lds
	s_add_i32 m0, s25, 0x16000
	s_nop 0
	buffer_load_dwordx4 v134, s[8:11], s28 offen lds
	s_waitcnt vmcnt(8)
	s_barrier
	v_add_u32_e32 v135, s24, v133
	s_waitcnt vmcnt(0)
	ds_read_b128 v[136:139], v135
	ds_read_b128 v[140:143], v135 offset:2048
	ds_read_b128 v[144:147], v135 offset:4096
	ds_read_b128 v[148:151], v135 offset:6144
	ds_read_b128 v[152:155], v135 offset:8192
	ds_read_b128 v[156:159], v135 offset:10240
	ds_read_b128 v[160:163], v135 offset:12288
	ds_read_b128 v[164:167], v135 offset:14336
	v_add_u32_e32 v135, s24, v132
	ds_read_b128 v[168:171], v135
	ds_read_b128 v[172:175], v135 offset:2048
	ds_read_b128 v[176:179], v135 offset:4096
	ds_read_b128 v[180:183], v135 offset:6144
	v_add_u32_e32 v135, s24, v131
	ds_read_b128 v[184:187], v135
	ds_read_b128 v[188:191], v135 offset:2048
	ds_read_b128 v[192:195], v135 offset:4096
	ds_read_b128 v[196:199], v135 offset:6144
	ds_read_b128 v[200:203], v135 offset:8192
	ds_read_b128 v[204:207], v135 offset:10240
	ds_read_b128 v[208:211], v135 offset:12288
	ds_read_b128 v[212:215], v135 offset:14336
	v_add_u32_e32 v135, s24, v130
	ds_read_b128 v[216:219], v135
	ds_read_b128 v[220:223], v135 offset:2048
	ds_read_b128 v[224:227], v135 offset:4096
	ds_read_b128 v[228:231], v135 offset:6144
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_mfma_f32_16x16x32_bf16 v[124:127], v[136:139], v[168:171], v[124:127]
	s_add_i32 s22, s22, 0x8000
	s_add_i32 s23, s23, -1
	s_addk_i32 s13, 0x80
	v_mfma_f32_16x16x32_bf16 v[120:123], v[136:139], v[172:175], v[120:123]
	s_cmp_eq_u32 s23, 0
	v_mfma_f32_16x16x32_bf16 v[116:119], v[136:139], v[176:179], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[136:139], v[180:183], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[140:143], v[168:171], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[140:143], v[172:175], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[140:143], v[176:179], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[140:143], v[180:183], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[92:95], v[144:147], v[168:171], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[144:147], v[172:175], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[144:147], v[176:179], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[144:147], v[180:183], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[148:151], v[168:171], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[148:151], v[172:175], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[148:151], v[176:179], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[148:151], v[180:183], v[64:67]
	v_mfma_f32_16x16x32_bf16 v[60:63], v[152:155], v[168:171], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[152:155], v[172:175], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[152:155], v[176:179], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[152:155], v[180:183], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[156:159], v[168:171], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[156:159], v[172:175], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[156:159], v[176:179], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[156:159], v[180:183], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[28:31], v[160:163], v[168:171], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[160:163], v[172:175], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[160:163], v[176:179], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[160:163], v[180:183], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[164:167], v[168:171], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[164:167], v[172:175], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[164:167], v[176:179], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[164:167], v[180:183], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[124:127], v[184:187], v[216:219], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[184:187], v[220:223], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[184:187], v[224:227], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[184:187], v[228:231], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[188:191], v[216:219], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[188:191], v[220:223], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[188:191], v[224:227], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[188:191], v[228:231], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[92:95], v[192:195], v[216:219], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[192:195], v[220:223], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[192:195], v[224:227], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[192:195], v[228:231], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[196:199], v[216:219], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[196:199], v[220:223], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[196:199], v[224:227], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[196:199], v[228:231], v[64:67]
	v_mfma_f32_16x16x32_bf16 v[60:63], v[200:203], v[216:219], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[200:203], v[220:223], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[200:203], v[224:227], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[200:203], v[228:231], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[204:207], v[216:219], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[204:207], v[220:223], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[204:207], v[224:227], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[204:207], v[228:231], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[28:31], v[208:211], v[216:219], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[208:211], v[220:223], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[208:211], v[224:227], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[208:211], v[228:231], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[212:215], v[216:219], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[212:215], v[220:223], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[212:215], v[224:227], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[212:215], v[228:231], v[4:7]
	s_cbranch_scc0 .LBB0_2
	s_branch .LBB0_4
.LBB0_3:
	v_mov_b32_e32 v7, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v11, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v9, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v15, 0
	v_mov_b32_e32 v14, 0
	v_mov_b32_e32 v13, 0
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v17, 0
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v23, 0
	v_mov_b32_e32 v22, 0
	v_mov_b32_e32 v21, 0
	v_mov_b32_e32 v20, 0
	v_mov_b32_e32 v27, 0
	v_mov_b32_e32 v26, 0
	v_mov_b32_e32 v25, 0
	v_mov_b32_e32 v24, 0
	v_mov_b32_e32 v31, 0
	v_mov_b32_e32 v30, 0
	v_mov_b32_e32 v29, 0
	v_mov_b32_e32 v28, 0
	v_mov_b32_e32 v35, 0
	v_mov_b32_e32 v34, 0
	v_mov_b32_e32 v33, 0
	v_mov_b32_e32 v32, 0
	v_mov_b32_e32 v39, 0
	v_mov_b32_e32 v38, 0
	v_mov_b32_e32 v37, 0
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v43, 0
	v_mov_b32_e32 v42, 0
	v_mov_b32_e32 v41, 0
	v_mov_b32_e32 v40, 0
	v_mov_b32_e32 v47, 0
	v_mov_b32_e32 v46, 0
	v_mov_b32_e32 v45, 0
	v_mov_b32_e32 v44, 0
	v_mov_b32_e32 v51, 0
	v_mov_b32_e32 v50, 0
	v_mov_b32_e32 v49, 0
	v_mov_b32_e32 v48, 0
	v_mov_b32_e32 v55, 0
	v_mov_b32_e32 v54, 0
	v_mov_b32_e32 v53, 0
	v_mov_b32_e32 v52, 0
	v_mov_b32_e32 v59, 0
	v_mov_b32_e32 v58, 0
	v_mov_b32_e32 v57, 0
	v_mov_b32_e32 v56, 0
	v_mov_b32_e32 v63, 0
	v_mov_b32_e32 v62, 0
	v_mov_b32_e32 v61, 0
	v_mov_b32_e32 v60, 0
	v_mov_b32_e32 v67, 0
	v_mov_b32_e32 v66, 0
	v_mov_b32_e32 v65, 0
	v_mov_b32_e32 v64, 0
	v_mov_b32_e32 v71, 0
	v_mov_b32_e32 v70, 0
	v_mov_b32_e32 v69, 0
	v_mov_b32_e32 v68, 0
	v_mov_b32_e32 v75, 0
	v_mov_b32_e32 v74, 0
	v_mov_b32_e32 v73, 0
	v_mov_b32_e32 v72, 0
	v_mov_b32_e32 v79, 0
	v_mov_b32_e32 v78, 0
	v_mov_b32_e32 v77, 0
	v_mov_b32_e32 v76, 0
	v_mov_b32_e32 v83, 0
	v_mov_b32_e32 v82, 0
	v_mov_b32_e32 v81, 0
	v_mov_b32_e32 v80, 0
	v_mov_b32_e32 v87, 0
	v_mov_b32_e32 v86, 0
	v_mov_b32_e32 v85, 0
	v_mov_b32_e32 v84, 0
	v_mov_b32_e32 v91, 0
	v_mov_b32_e32 v90, 0
	v_mov_b32_e32 v89, 0
	v_mov_b32_e32 v88, 0
	v_mov_b32_e32 v95, 0
	v_mov_b32_e32 v94, 0
	v_mov_b32_e32 v93, 0
	v_mov_b32_e32 v92, 0
	v_mov_b32_e32 v99, 0
	v_mov_b32_e32 v98, 0
	v_mov_b32_e32 v97, 0
	v_mov_b32_e32 v96, 0
	v_mov_b32_e32 v103, 0
	v_mov_b32_e32 v102, 0
	v_mov_b32_e32 v101, 0
	v_mov_b32_e32 v100, 0
	v_mov_b32_e32 v107, 0
	v_mov_b32_e32 v106, 0
	v_mov_b32_e32 v105, 0
	v_mov_b32_e32 v104, 0
	v_mov_b32_e32 v111, 0
	v_mov_b32_e32 v110, 0
	v_mov_b32_e32 v109, 0
	v_mov_b32_e32 v108, 0
	v_mov_b32_e32 v115, 0
	v_mov_b32_e32 v114, 0
	v_mov_b32_e32 v113, 0
	v_mov_b32_e32 v112, 0
	v_mov_b32_e32 v119, 0
	v_mov_b32_e32 v118, 0
	v_mov_b32_e32 v117, 0
	v_mov_b32_e32 v116, 0
	v_mov_b32_e32 v123, 0
	v_mov_b32_e32 v122, 0
	v_mov_b32_e32 v121, 0
	v_mov_b32_e32 v120, 0
	v_mov_b32_e32 v127, 0
	v_mov_b32_e32 v126, 0
	v_mov_b32_e32 v125, 0
	v_mov_b32_e32 v124, 0
.LBB0_4:
	s_waitcnt vmcnt(0)
	s_barrier
	s_lshl_b32 s2, s2, 15
	s_and_b32 s2, s2, 0x8000
	v_add_u32_e32 v133, s2, v133
	v_add_u32_e32 v132, s2, v132
	v_add_u32_e32 v131, s2, v131
	ds_read_b128 v[172:175], v133
	ds_read_b128 v[176:179], v133 offset:2048
	ds_read_b128 v[180:183], v133 offset:4096
	ds_read_b128 v[184:187], v133 offset:6144
	ds_read_b128 v[188:191], v133 offset:8192
	ds_read_b128 v[192:195], v133 offset:10240
	ds_read_b128 v[196:199], v133 offset:12288
	ds_read_b128 v[200:203], v133 offset:14336
	ds_read_b128 v[204:207], v132
	ds_read_b128 v[208:211], v132 offset:2048
	ds_read_b128 v[212:215], v132 offset:4096
	ds_read_b128 v[216:219], v132 offset:6144
	ds_read_b128 v[220:223], v131
	ds_read_b128 v[224:227], v131 offset:2048
	ds_read_b128 v[168:171], v131 offset:4096
	ds_read_b128 v[164:167], v131 offset:6144
	ds_read_b128 v[160:163], v131 offset:8192
	ds_read_b128 v[156:159], v131 offset:10240
	ds_read_b128 v[152:155], v131 offset:12288
	ds_read_b128 v[132:135], v131 offset:14336
	v_add_u32_e32 v130, s2, v130
	ds_read_b128 v[148:151], v130
	ds_read_b128 v[144:147], v130 offset:2048
	ds_read_b128 v[140:143], v130 offset:4096
	ds_read_b128 v[136:139], v130 offset:6144
	s_waitcnt lgkmcnt(0)
	s_ashr_i32 s2, s12, 31
	s_mul_hi_u32 s4, s0, s12
	s_mul_i32 s2, s0, s2
	s_add_i32 s2, s4, s2
	s_mul_i32 s1, s1, s12
	v_mfma_f32_16x16x32_bf16 v[124:127], v[172:175], v[204:207], v[124:127]
	s_add_i32 s1, s2, s1
	s_mul_i32 s0, s0, s12
	s_lshl_b64 s[0:1], s[0:1], 1
	s_add_u32 s2, s14, s0
	s_addc_u32 s4, s15, s1
	s_lshl_b32 s0, s3, 8
	s_ashr_i32 s1, s0, 31
	v_mfma_f32_16x16x32_bf16 v[124:127], v[220:223], v[148:151], v[124:127]
	s_lshl_b64 s[0:1], s[0:1], 1
	v_lshlrev_b32_e32 v129, 2, v129
	s_add_u32 s0, s2, s0
	v_lshl_or_b32 v129, s17, 7, v129
	s_addc_u32 s1, s4, s1
	v_lshl_or_b32 v128, s16, 6, v128
	v_mul_lo_u32 v131, v129, s12
	v_mfma_f32_16x16x32_bf16 v[120:123], v[172:175], v[208:211], v[120:123]
	s_lshl_b32 s2, s12, 9
	s_and_b32 s1, s1, 0xffff
	s_mov_b32 s3, 0x27000
	v_mfma_f32_16x16x32_bf16 v[116:119], v[172:175], v[212:215], v[116:119]
	v_cvt_pk_bf16_f32 v124, v124, s0
	v_cvt_pk_bf16_f32 v125, v125, s0
	v_cvt_pk_bf16_f32 v126, v126, s0
	v_mfma_f32_16x16x32_bf16 v[112:115], v[172:175], v[216:219], v[112:115]
	v_add_lshl_u32 v172, v128, v131, 1
	buffer_store_short v124, v172, s[0:3], 0 offen
	v_or_b32_e32 v124, 1, v129
	v_mul_lo_u32 v124, v124, s12
	v_add_lshl_u32 v172, v128, v124, 1
	buffer_store_short v125, v172, s[0:3], 0 offen
	v_or_b32_e32 v125, 2, v129
	v_mul_lo_u32 v125, v125, s12
	v_add_lshl_u32 v172, v128, v125, 1
	buffer_store_short v126, v172, s[0:3], 0 offen
	v_or_b32_e32 v126, 3, v129
	v_mfma_f32_16x16x32_bf16 v[120:123], v[220:223], v[144:147], v[120:123]
	v_mul_lo_u32 v126, v126, s12
	v_add_lshl_u32 v172, v128, v126, 1
	v_cvt_pk_bf16_f32 v127, v127, s0
	buffer_store_short v127, v172, s[0:3], 0 offen
	v_or_b32_e32 v127, 16, v128
	v_add_lshl_u32 v172, v127, v131, 1
	s_nop 1
	v_cvt_pk_bf16_f32 v120, v120, s0
	buffer_store_short v120, v172, s[0:3], 0 offen
	v_add_lshl_u32 v120, v127, v124, 1
	v_cvt_pk_bf16_f32 v121, v121, s0
	v_mfma_f32_16x16x32_bf16 v[116:119], v[220:223], v[140:143], v[116:119]
	buffer_store_short v121, v120, s[0:3], 0 offen
	v_add_lshl_u32 v120, v127, v125, 1
	v_cvt_pk_bf16_f32 v121, v122, s0
	buffer_store_short v121, v120, s[0:3], 0 offen
	v_add_lshl_u32 v120, v127, v126, 1
	v_cvt_pk_bf16_f32 v121, v123, s0
	buffer_store_short v121, v120, s[0:3], 0 offen
	v_or_b32_e32 v120, 32, v128
	v_add_lshl_u32 v121, v120, v131, 1
	v_cvt_pk_bf16_f32 v116, v116, s0
	v_mfma_f32_16x16x32_bf16 v[112:115], v[220:223], v[136:139], v[112:115]
	buffer_store_short v116, v121, s[0:3], 0 offen
	v_add_lshl_u32 v116, v120, v124, 1
	v_cvt_pk_bf16_f32 v117, v117, s0
	v_mfma_f32_16x16x32_bf16 v[108:111], v[176:179], v[204:207], v[108:111]
	buffer_store_short v117, v116, s[0:3], 0 offen
	v_add_lshl_u32 v116, v120, v125, 1
	v_cvt_pk_bf16_f32 v117, v118, s0
	v_or_b32_e32 v130, 48, v128
	buffer_store_short v117, v116, s[0:3], 0 offen
	v_add_lshl_u32 v116, v120, v126, 1
	v_cvt_pk_bf16_f32 v117, v119, s0
	buffer_store_short v117, v116, s[0:3], 0 offen
	v_add_lshl_u32 v116, v130, v131, 1
	v_cvt_pk_bf16_f32 v112, v112, s0
	buffer_store_short v112, v116, s[0:3], 0 offen
	v_add_lshl_u32 v112, v130, v124, 1
	v_cvt_pk_bf16_f32 v113, v113, s0
	buffer_store_short v113, v112, s[0:3], 0 offen
	v_add_lshl_u32 v112, v130, v125, 1
	v_cvt_pk_bf16_f32 v113, v114, s0
	v_mfma_f32_16x16x32_bf16 v[108:111], v[224:227], v[148:151], v[108:111]
	buffer_store_short v113, v112, s[0:3], 0 offen
	v_add_lshl_u32 v112, v130, v126, 1
	v_cvt_pk_bf16_f32 v113, v115, s0
	buffer_store_short v113, v112, s[0:3], 0 offen
	v_or_b32_e32 v112, 16, v129
	v_mul_lo_u32 v112, v112, s12
	v_add_lshl_u32 v113, v128, v112, 1
	s_nop 0
	v_cvt_pk_bf16_f32 v108, v108, s0
	buffer_store_short v108, v113, s[0:3], 0 offen
	v_or_b32_e32 v108, 17, v129
	v_mfma_f32_16x16x32_bf16 v[104:107], v[176:179], v[208:211], v[104:107]
	v_mul_lo_u32 v108, v108, s12
	v_add_lshl_u32 v113, v128, v108, 1
	v_cvt_pk_bf16_f32 v109, v109, s0
	buffer_store_short v109, v113, s[0:3], 0 offen
	v_or_b32_e32 v109, 18, v129
	v_mul_lo_u32 v109, v109, s12
	v_mfma_f32_16x16x32_bf16 v[100:103], v[176:179], v[212:215], v[100:103]
	v_add_lshl_u32 v113, v128, v109, 1
	v_cvt_pk_bf16_f32 v110, v110, s0
	buffer_store_short v110, v113, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[104:107], v[224:227], v[144:147], v[104:107]
	v_or_b32_e32 v110, 19, v129
	v_mul_lo_u32 v110, v110, s12
	v_add_lshl_u32 v113, v128, v110, 1
	v_cvt_pk_bf16_f32 v111, v111, s0
	buffer_store_short v111, v113, s[0:3], 0 offen
	v_add_lshl_u32 v111, v127, v112, 1
	s_nop 1
	v_cvt_pk_bf16_f32 v104, v104, s0
	v_mfma_f32_16x16x32_bf16 v[100:103], v[224:227], v[140:143], v[100:103]
	buffer_store_short v104, v111, s[0:3], 0 offen
	v_add_lshl_u32 v104, v127, v108, 1
	v_cvt_pk_bf16_f32 v105, v105, s0
	v_mfma_f32_16x16x32_bf16 v[96:99], v[176:179], v[216:219], v[96:99]
	buffer_store_short v105, v104, s[0:3], 0 offen
	v_add_lshl_u32 v104, v127, v109, 1
	v_cvt_pk_bf16_f32 v105, v106, s0
	buffer_store_short v105, v104, s[0:3], 0 offen
	v_add_lshl_u32 v104, v127, v110, 1
	v_cvt_pk_bf16_f32 v105, v107, s0
	buffer_store_short v105, v104, s[0:3], 0 offen
	v_add_lshl_u32 v104, v120, v112, 1
	v_cvt_pk_bf16_f32 v100, v100, s0
	buffer_store_short v100, v104, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[104:107], v[200:203], v[216:219], v[4:7]
	v_add_lshl_u32 v100, v120, v108, 1
	v_cvt_pk_bf16_f32 v101, v101, s0
	buffer_store_short v101, v100, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[4:7], v[224:227], v[136:139], v[96:99]
	v_add_lshl_u32 v100, v120, v109, 1
	v_cvt_pk_bf16_f32 v101, v102, s0
	buffer_store_short v101, v100, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[92:95], v[180:183], v[204:207], v[92:95]
	v_add_lshl_u32 v96, v120, v110, 1
	v_cvt_pk_bf16_f32 v97, v103, s0
	buffer_store_short v97, v96, s[0:3], 0 offen
	v_add_lshl_u32 v96, v130, v112, 1
	v_cvt_pk_bf16_f32 v4, v4, s0
	buffer_store_short v4, v96, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v108, 1
	v_cvt_pk_bf16_f32 v5, v5, s0
	v_mfma_f32_16x16x32_bf16 v[92:95], v[168:171], v[148:151], v[92:95]
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v109, 1
	v_cvt_pk_bf16_f32 v5, v6, s0
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v110, 1
	v_cvt_pk_bf16_f32 v5, v7, s0
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_or_b32_e32 v4, 32, v129
	v_mul_lo_u32 v4, v4, s12
	v_add_lshl_u32 v5, v128, v4, 1
	v_cvt_pk_bf16_f32 v6, v92, s0
	buffer_store_short v6, v5, s[0:3], 0 offen
	v_or_b32_e32 v5, 33, v129
	v_mfma_f32_16x16x32_bf16 v[88:91], v[180:183], v[208:211], v[88:91]
	v_mul_lo_u32 v5, v5, s12
	v_add_lshl_u32 v6, v128, v5, 1
	v_cvt_pk_bf16_f32 v7, v93, s0
	buffer_store_short v7, v6, s[0:3], 0 offen
	v_or_b32_e32 v6, 34, v129
	v_mul_lo_u32 v6, v6, s12
	v_mfma_f32_16x16x32_bf16 v[84:87], v[180:183], v[212:215], v[84:87]
	v_add_lshl_u32 v7, v128, v6, 1
	v_cvt_pk_bf16_f32 v92, v94, s0
	buffer_store_short v92, v7, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[88:91], v[168:171], v[144:147], v[88:91]
	v_or_b32_e32 v7, 35, v129
	v_mul_lo_u32 v92, v7, s12
	v_add_lshl_u32 v7, v128, v92, 1
	v_cvt_pk_bf16_f32 v93, v95, s0
	v_mfma_f32_16x16x32_bf16 v[80:83], v[180:183], v[216:219], v[80:83]
	buffer_store_short v93, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v127, v4, 1
	s_nop 0
	v_cvt_pk_bf16_f32 v88, v88, s0
	v_mfma_f32_16x16x32_bf16 v[84:87], v[168:171], v[140:143], v[84:87]
	buffer_store_short v88, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v127, v5, 1
	v_cvt_pk_bf16_f32 v88, v89, s0
	buffer_store_short v88, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v127, v6, 1
	v_cvt_pk_bf16_f32 v88, v90, s0
	v_mfma_f32_16x16x32_bf16 v[76:79], v[184:187], v[204:207], v[76:79]
	buffer_store_short v88, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v127, v92, 1
	v_cvt_pk_bf16_f32 v88, v91, s0
	v_mfma_f32_16x16x32_bf16 v[80:83], v[168:171], v[136:139], v[80:83]
	buffer_store_short v88, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v120, v4, 1
	v_cvt_pk_bf16_f32 v84, v84, s0
	buffer_store_short v84, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v120, v5, 1
	v_cvt_pk_bf16_f32 v84, v85, s0
	buffer_store_short v84, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v120, v6, 1
	v_cvt_pk_bf16_f32 v84, v86, s0
	v_mfma_f32_16x16x32_bf16 v[0:3], v[200:203], v[212:215], v[0:3]
	buffer_store_short v84, v7, s[0:3], 0 offen
	v_add_lshl_u32 v7, v120, v92, 1
	v_cvt_pk_bf16_f32 v84, v87, s0
	v_mfma_f32_16x16x32_bf16 v[76:79], v[164:167], v[148:151], v[76:79]
	buffer_store_short v84, v7, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v4, 1
	v_cvt_pk_bf16_f32 v7, v80, s0
	buffer_store_short v7, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v5, 1
	v_cvt_pk_bf16_f32 v5, v81, s0
	v_or_b32_e32 v80, 48, v129
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v6, 1
	v_cvt_pk_bf16_f32 v5, v82, s0
	v_mul_lo_u32 v80, v80, s12
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[4:7], v[132:135], v[140:143], v[0:3]
	v_add_lshl_u32 v81, v128, v80, 1
	v_cvt_pk_bf16_f32 v76, v76, s0
	v_cvt_pk_bf16_f32 v77, v77, s0
	v_add_lshl_u32 v0, v130, v92, 1
	v_cvt_pk_bf16_f32 v1, v83, s0
	buffer_store_short v1, v0, s[0:3], 0 offen
	buffer_store_short v76, v81, s[0:3], 0 offen
	v_or_b32_e32 v76, 49, v129
	v_mfma_f32_16x16x32_bf16 v[72:75], v[184:187], v[208:211], v[72:75]
	v_mul_lo_u32 v76, v76, s12
	v_add_lshl_u32 v81, v128, v76, 1
	buffer_store_short v77, v81, s[0:3], 0 offen
	v_or_b32_e32 v77, 50, v129
	v_mul_lo_u32 v77, v77, s12
	v_mfma_f32_16x16x32_bf16 v[68:71], v[184:187], v[212:215], v[68:71]
	v_add_lshl_u32 v81, v128, v77, 1
	v_cvt_pk_bf16_f32 v78, v78, s0
	buffer_store_short v78, v81, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[72:75], v[164:167], v[144:147], v[72:75]
	v_or_b32_e32 v78, 51, v129
	v_mul_lo_u32 v78, v78, s12
	v_add_lshl_u32 v81, v128, v78, 1
	v_cvt_pk_bf16_f32 v79, v79, s0
	v_mfma_f32_16x16x32_bf16 v[64:67], v[184:187], v[216:219], v[64:67]
	buffer_store_short v79, v81, s[0:3], 0 offen
	v_add_lshl_u32 v79, v127, v80, 1
	s_nop 0
	v_cvt_pk_bf16_f32 v72, v72, s0
	v_mfma_f32_16x16x32_bf16 v[68:71], v[164:167], v[140:143], v[68:71]
	buffer_store_short v72, v79, s[0:3], 0 offen
	v_add_lshl_u32 v72, v127, v76, 1
	v_cvt_pk_bf16_f32 v73, v73, s0
	buffer_store_short v73, v72, s[0:3], 0 offen
	v_add_lshl_u32 v72, v127, v77, 1
	v_cvt_pk_bf16_f32 v73, v74, s0
	buffer_store_short v73, v72, s[0:3], 0 offen
	v_add_lshl_u32 v72, v127, v78, 1
	v_cvt_pk_bf16_f32 v73, v75, s0
	v_mfma_f32_16x16x32_bf16 v[64:67], v[164:167], v[136:139], v[64:67]
	buffer_store_short v73, v72, s[0:3], 0 offen
	v_add_lshl_u32 v72, v120, v80, 1
	v_cvt_pk_bf16_f32 v68, v68, s0
	buffer_store_short v68, v72, s[0:3], 0 offen
	v_add_lshl_u32 v68, v120, v76, 1
	v_cvt_pk_bf16_f32 v69, v69, s0
	v_mfma_f32_16x16x32_bf16 v[60:63], v[188:191], v[204:207], v[60:63]
	buffer_store_short v69, v68, s[0:3], 0 offen
	v_add_lshl_u32 v68, v120, v77, 1
	v_cvt_pk_bf16_f32 v69, v70, s0
	buffer_store_short v69, v68, s[0:3], 0 offen
	v_add_lshl_u32 v68, v120, v78, 1
	v_cvt_pk_bf16_f32 v69, v71, s0
	buffer_store_short v69, v68, s[0:3], 0 offen
	v_add_lshl_u32 v68, v130, v80, 1
	v_cvt_pk_bf16_f32 v64, v64, s0
	buffer_store_short v64, v68, s[0:3], 0 offen
	v_add_lshl_u32 v64, v130, v76, 1
	v_cvt_pk_bf16_f32 v65, v65, s0
	v_mfma_f32_16x16x32_bf16 v[60:63], v[160:163], v[148:151], v[60:63]
	buffer_store_short v65, v64, s[0:3], 0 offen
	v_add_lshl_u32 v64, v130, v77, 1
	v_cvt_pk_bf16_f32 v65, v66, s0
	buffer_store_short v65, v64, s[0:3], 0 offen
	v_add_lshl_u32 v64, v130, v78, 1
	v_cvt_pk_bf16_f32 v65, v67, s0
	buffer_store_short v65, v64, s[0:3], 0 offen
	v_or_b32_e32 v64, 64, v129
	v_mul_lo_u32 v64, v64, s12
	v_add_lshl_u32 v65, v128, v64, 1
	v_cvt_pk_bf16_f32 v60, v60, s0
	buffer_store_short v60, v65, s[0:3], 0 offen
	v_or_b32_e32 v60, 0x41, v129
	v_mfma_f32_16x16x32_bf16 v[56:59], v[188:191], v[208:211], v[56:59]
	v_mul_lo_u32 v60, v60, s12
	v_add_lshl_u32 v65, v128, v60, 1
	v_cvt_pk_bf16_f32 v61, v61, s0
	buffer_store_short v61, v65, s[0:3], 0 offen
	v_or_b32_e32 v61, 0x42, v129
	v_mul_lo_u32 v61, v61, s12
	v_mfma_f32_16x16x32_bf16 v[52:55], v[188:191], v[212:215], v[52:55]
	v_add_lshl_u32 v65, v128, v61, 1
	v_cvt_pk_bf16_f32 v62, v62, s0
	buffer_store_short v62, v65, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[56:59], v[160:163], v[144:147], v[56:59]
	v_or_b32_e32 v62, 0x43, v129
	v_mul_lo_u32 v62, v62, s12
	v_add_lshl_u32 v65, v128, v62, 1
	v_cvt_pk_bf16_f32 v63, v63, s0
	v_mfma_f32_16x16x32_bf16 v[48:51], v[188:191], v[216:219], v[48:51]
	buffer_store_short v63, v65, s[0:3], 0 offen
	v_add_lshl_u32 v63, v127, v64, 1
	s_nop 0
	v_cvt_pk_bf16_f32 v56, v56, s0
	v_mfma_f32_16x16x32_bf16 v[52:55], v[160:163], v[140:143], v[52:55]
	buffer_store_short v56, v63, s[0:3], 0 offen
	v_add_lshl_u32 v56, v127, v60, 1
	v_cvt_pk_bf16_f32 v57, v57, s0
	buffer_store_short v57, v56, s[0:3], 0 offen
	v_add_lshl_u32 v56, v127, v61, 1
	v_cvt_pk_bf16_f32 v57, v58, s0
	buffer_store_short v57, v56, s[0:3], 0 offen
	v_add_lshl_u32 v56, v127, v62, 1
	v_cvt_pk_bf16_f32 v57, v59, s0
	v_mfma_f32_16x16x32_bf16 v[48:51], v[160:163], v[136:139], v[48:51]
	buffer_store_short v57, v56, s[0:3], 0 offen
	v_add_lshl_u32 v56, v120, v64, 1
	v_cvt_pk_bf16_f32 v52, v52, s0
	buffer_store_short v52, v56, s[0:3], 0 offen
	v_add_lshl_u32 v52, v120, v60, 1
	v_cvt_pk_bf16_f32 v53, v53, s0
	v_mfma_f32_16x16x32_bf16 v[44:47], v[192:195], v[204:207], v[44:47]
	buffer_store_short v53, v52, s[0:3], 0 offen
	v_add_lshl_u32 v52, v120, v61, 1
	v_cvt_pk_bf16_f32 v53, v54, s0
	buffer_store_short v53, v52, s[0:3], 0 offen
	v_add_lshl_u32 v52, v120, v62, 1
	v_cvt_pk_bf16_f32 v53, v55, s0
	buffer_store_short v53, v52, s[0:3], 0 offen
	v_add_lshl_u32 v52, v130, v64, 1
	v_cvt_pk_bf16_f32 v48, v48, s0
	buffer_store_short v48, v52, s[0:3], 0 offen
	v_add_lshl_u32 v48, v130, v60, 1
	v_cvt_pk_bf16_f32 v49, v49, s0
	v_mfma_f32_16x16x32_bf16 v[44:47], v[156:159], v[148:151], v[44:47]
	buffer_store_short v49, v48, s[0:3], 0 offen
	v_add_lshl_u32 v48, v130, v61, 1
	v_cvt_pk_bf16_f32 v49, v50, s0
	buffer_store_short v49, v48, s[0:3], 0 offen
	v_add_lshl_u32 v48, v130, v62, 1
	v_cvt_pk_bf16_f32 v49, v51, s0
	buffer_store_short v49, v48, s[0:3], 0 offen
	v_or_b32_e32 v48, 0x50, v129
	v_mul_lo_u32 v48, v48, s12
	v_add_lshl_u32 v49, v128, v48, 1
	v_cvt_pk_bf16_f32 v44, v44, s0
	buffer_store_short v44, v49, s[0:3], 0 offen
	v_or_b32_e32 v44, 0x51, v129
	v_mfma_f32_16x16x32_bf16 v[40:43], v[192:195], v[208:211], v[40:43]
	v_mul_lo_u32 v44, v44, s12
	v_add_lshl_u32 v49, v128, v44, 1
	v_cvt_pk_bf16_f32 v45, v45, s0
	buffer_store_short v45, v49, s[0:3], 0 offen
	v_or_b32_e32 v45, 0x52, v129
	v_mul_lo_u32 v45, v45, s12
	v_mfma_f32_16x16x32_bf16 v[36:39], v[192:195], v[212:215], v[36:39]
	v_add_lshl_u32 v49, v128, v45, 1
	v_cvt_pk_bf16_f32 v46, v46, s0
	buffer_store_short v46, v49, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[40:43], v[156:159], v[144:147], v[40:43]
	v_or_b32_e32 v46, 0x53, v129
	v_mul_lo_u32 v46, v46, s12
	v_add_lshl_u32 v49, v128, v46, 1
	v_cvt_pk_bf16_f32 v47, v47, s0
	v_mfma_f32_16x16x32_bf16 v[32:35], v[192:195], v[216:219], v[32:35]
	buffer_store_short v47, v49, s[0:3], 0 offen
	v_add_lshl_u32 v47, v127, v48, 1
	s_nop 0
	v_cvt_pk_bf16_f32 v40, v40, s0
	v_mfma_f32_16x16x32_bf16 v[36:39], v[156:159], v[140:143], v[36:39]
	buffer_store_short v40, v47, s[0:3], 0 offen
	v_add_lshl_u32 v40, v127, v44, 1
	v_cvt_pk_bf16_f32 v41, v41, s0
	buffer_store_short v41, v40, s[0:3], 0 offen
	v_add_lshl_u32 v40, v127, v45, 1
	v_cvt_pk_bf16_f32 v41, v42, s0
	buffer_store_short v41, v40, s[0:3], 0 offen
	v_add_lshl_u32 v40, v127, v46, 1
	v_cvt_pk_bf16_f32 v41, v43, s0
	v_mfma_f32_16x16x32_bf16 v[32:35], v[156:159], v[136:139], v[32:35]
	buffer_store_short v41, v40, s[0:3], 0 offen
	v_add_lshl_u32 v40, v120, v48, 1
	v_cvt_pk_bf16_f32 v36, v36, s0
	buffer_store_short v36, v40, s[0:3], 0 offen
	v_add_lshl_u32 v36, v120, v44, 1
	v_cvt_pk_bf16_f32 v37, v37, s0
	v_mfma_f32_16x16x32_bf16 v[28:31], v[196:199], v[204:207], v[28:31]
	buffer_store_short v37, v36, s[0:3], 0 offen
	v_add_lshl_u32 v36, v120, v45, 1
	v_cvt_pk_bf16_f32 v37, v38, s0
	buffer_store_short v37, v36, s[0:3], 0 offen
	v_add_lshl_u32 v36, v120, v46, 1
	v_cvt_pk_bf16_f32 v37, v39, s0
	buffer_store_short v37, v36, s[0:3], 0 offen
	v_add_lshl_u32 v36, v130, v48, 1
	v_cvt_pk_bf16_f32 v32, v32, s0
	buffer_store_short v32, v36, s[0:3], 0 offen
	v_add_lshl_u32 v32, v130, v44, 1
	v_cvt_pk_bf16_f32 v33, v33, s0
	v_mfma_f32_16x16x32_bf16 v[28:31], v[152:155], v[148:151], v[28:31]
	buffer_store_short v33, v32, s[0:3], 0 offen
	v_add_lshl_u32 v32, v130, v45, 1
	v_cvt_pk_bf16_f32 v33, v34, s0
	buffer_store_short v33, v32, s[0:3], 0 offen
	v_add_lshl_u32 v32, v130, v46, 1
	v_cvt_pk_bf16_f32 v33, v35, s0
	buffer_store_short v33, v32, s[0:3], 0 offen
	v_or_b32_e32 v32, 0x60, v129
	v_mul_lo_u32 v32, v32, s12
	v_add_lshl_u32 v33, v128, v32, 1
	v_cvt_pk_bf16_f32 v28, v28, s0
	buffer_store_short v28, v33, s[0:3], 0 offen
	v_or_b32_e32 v28, 0x61, v129
	v_mfma_f32_16x16x32_bf16 v[24:27], v[196:199], v[208:211], v[24:27]
	v_mul_lo_u32 v28, v28, s12
	v_add_lshl_u32 v33, v128, v28, 1
	v_cvt_pk_bf16_f32 v29, v29, s0
	buffer_store_short v29, v33, s[0:3], 0 offen
	v_or_b32_e32 v29, 0x62, v129
	v_mul_lo_u32 v29, v29, s12
	v_mfma_f32_16x16x32_bf16 v[20:23], v[196:199], v[212:215], v[20:23]
	v_add_lshl_u32 v33, v128, v29, 1
	v_cvt_pk_bf16_f32 v30, v30, s0
	buffer_store_short v30, v33, s[0:3], 0 offen
	v_mfma_f32_16x16x32_bf16 v[24:27], v[152:155], v[144:147], v[24:27]
	v_or_b32_e32 v30, 0x63, v129
	v_mul_lo_u32 v30, v30, s12
	v_add_lshl_u32 v33, v128, v30, 1
	v_cvt_pk_bf16_f32 v31, v31, s0
	v_mfma_f32_16x16x32_bf16 v[16:19], v[196:199], v[216:219], v[16:19]
	buffer_store_short v31, v33, s[0:3], 0 offen
	v_add_lshl_u32 v31, v127, v32, 1
	s_nop 0
	v_cvt_pk_bf16_f32 v24, v24, s0
	v_mfma_f32_16x16x32_bf16 v[20:23], v[152:155], v[140:143], v[20:23]
	buffer_store_short v24, v31, s[0:3], 0 offen
	v_add_lshl_u32 v24, v127, v28, 1
	v_cvt_pk_bf16_f32 v25, v25, s0
	buffer_store_short v25, v24, s[0:3], 0 offen
	v_add_lshl_u32 v24, v127, v29, 1
	v_cvt_pk_bf16_f32 v25, v26, s0
	buffer_store_short v25, v24, s[0:3], 0 offen
	v_add_lshl_u32 v24, v127, v30, 1
	v_cvt_pk_bf16_f32 v25, v27, s0
	v_mfma_f32_16x16x32_bf16 v[16:19], v[152:155], v[136:139], v[16:19]
	buffer_store_short v25, v24, s[0:3], 0 offen
	v_add_lshl_u32 v24, v120, v32, 1
	v_cvt_pk_bf16_f32 v20, v20, s0
	buffer_store_short v20, v24, s[0:3], 0 offen
	v_add_lshl_u32 v20, v120, v28, 1
	v_cvt_pk_bf16_f32 v21, v21, s0
	v_mfma_f32_16x16x32_bf16 v[12:15], v[200:203], v[204:207], v[12:15]
	buffer_store_short v21, v20, s[0:3], 0 offen
	v_add_lshl_u32 v20, v120, v29, 1
	v_cvt_pk_bf16_f32 v21, v22, s0
	buffer_store_short v21, v20, s[0:3], 0 offen
	v_add_lshl_u32 v20, v120, v30, 1
	v_cvt_pk_bf16_f32 v21, v23, s0
	buffer_store_short v21, v20, s[0:3], 0 offen
	v_add_lshl_u32 v20, v130, v32, 1
	v_cvt_pk_bf16_f32 v16, v16, s0
	buffer_store_short v16, v20, s[0:3], 0 offen
	v_add_lshl_u32 v16, v130, v28, 1
	v_cvt_pk_bf16_f32 v17, v17, s0
	v_mfma_f32_16x16x32_bf16 v[12:15], v[132:135], v[148:151], v[12:15]
	buffer_store_short v17, v16, s[0:3], 0 offen
	v_add_lshl_u32 v16, v130, v29, 1
	v_cvt_pk_bf16_f32 v17, v18, s0
	buffer_store_short v17, v16, s[0:3], 0 offen
	v_add_lshl_u32 v16, v130, v30, 1
	v_cvt_pk_bf16_f32 v17, v19, s0
	buffer_store_short v17, v16, s[0:3], 0 offen
	v_or_b32_e32 v16, 0x70, v129
	v_mul_lo_u32 v16, v16, s12
	v_add_lshl_u32 v17, v128, v16, 1
	v_cvt_pk_bf16_f32 v12, v12, s0
	buffer_store_short v12, v17, s[0:3], 0 offen
	v_or_b32_e32 v12, 0x71, v129
	v_mfma_f32_16x16x32_bf16 v[8:11], v[200:203], v[208:211], v[8:11]
	v_mul_lo_u32 v12, v12, s12
	v_add_lshl_u32 v17, v128, v12, 1
	v_cvt_pk_bf16_f32 v13, v13, s0
	buffer_store_short v13, v17, s[0:3], 0 offen
	v_or_b32_e32 v13, 0x72, v129
	v_mul_lo_u32 v13, v13, s12
	v_mfma_f32_16x16x32_bf16 v[8:11], v[132:135], v[144:147], v[8:11]
	v_add_lshl_u32 v17, v128, v13, 1
	v_cvt_pk_bf16_f32 v14, v14, s0
	buffer_store_short v14, v17, s[0:3], 0 offen
	v_or_b32_e32 v14, 0x73, v129
	v_mul_lo_u32 v14, v14, s12
	v_add_lshl_u32 v17, v128, v14, 1
	v_cvt_pk_bf16_f32 v15, v15, s0
	buffer_store_short v15, v17, s[0:3], 0 offen
	v_add_lshl_u32 v15, v127, v16, 1
	v_cvt_pk_bf16_f32 v8, v8, s0
	buffer_store_short v8, v15, s[0:3], 0 offen
	v_add_lshl_u32 v8, v127, v12, 1
	v_cvt_pk_bf16_f32 v9, v9, s0
	buffer_store_short v9, v8, s[0:3], 0 offen
	v_add_lshl_u32 v8, v127, v13, 1
	v_cvt_pk_bf16_f32 v9, v10, s0
	buffer_store_short v9, v8, s[0:3], 0 offen
	v_add_lshl_u32 v8, v127, v14, 1
	v_cvt_pk_bf16_f32 v9, v11, s0
	v_mfma_f32_16x16x32_bf16 v[0:3], v[132:135], v[136:139], v[104:107]
	buffer_store_short v9, v8, s[0:3], 0 offen
	v_add_lshl_u32 v8, v120, v16, 1
	v_cvt_pk_bf16_f32 v4, v4, s0
	buffer_store_short v4, v8, s[0:3], 0 offen
	v_add_lshl_u32 v4, v120, v12, 1
	v_cvt_pk_bf16_f32 v5, v5, s0
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v120, v13, 1
	v_cvt_pk_bf16_f32 v5, v6, s0
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v120, v14, 1
	v_cvt_pk_bf16_f32 v5, v7, s0
	buffer_store_short v5, v4, s[0:3], 0 offen
	v_add_lshl_u32 v4, v130, v16, 1
	v_cvt_pk_bf16_f32 v0, v0, s0
	buffer_store_short v0, v4, s[0:3], 0 offen
	v_add_lshl_u32 v0, v130, v12, 1
	v_cvt_pk_bf16_f32 v1, v1, s0
	buffer_store_short v1, v0, s[0:3], 0 offen
	v_add_lshl_u32 v0, v130, v13, 1
	v_cvt_pk_bf16_f32 v1, v2, s0
	buffer_store_short v1, v0, s[0:3], 0 offen
	v_add_lshl_u32 v0, v130, v14, 1
	v_cvt_pk_bf16_f32 v1, v3, s0
	buffer_store_short v1, v0, s[0:3], 0 offen
	s_endpgm
	.section	.rodata,"a",@progbits
	.text
.Lfunc_end0:
	.section	.AMDGPU.csdata,"",@progbits
	.text
	.p2alignl 6, 3212836864
	.section	.AMDGPU.gpr_maximums,"",@progbits
	.text
	.type	__hip_cuid_,@object
	.section	.bss,"aw",@nobits
__hip_cuid_:
	.byte	0
	.section	".note.GNU-stack","",@progbits
	.addrsig_sym __hip_cuid_
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .actual_access:  read_only
        .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .actual_access:  read_only
        .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .actual_access:  write_only
        .address_space:  global
        .offset:         16
        .size:           8
        .value_kind:     global_buffer
      - .offset:         24
        .size:           4
        .value_kind:     by_value
      - .offset:         28
        .size:           4
        .value_kind:     by_value
      - .offset:         32
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 131072
    .kernarg_segment_align: 8
    .kernarg_segment_size: 36
    .max_flat_workgroup_size: 512
    .name:           gemm
    .private_segment_fixed_size: 0
    .sgpr_count:     35
    .sgpr_spill_count: 0
    .symbol:         gemm.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     232
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx950
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
