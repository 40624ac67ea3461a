	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	.amdhsa_code_object_version 6
	.text
	.type	pingpong,@function
pingpong:
	s_load_dwordx4 s[20:23], s[0:1], 0x0
	s_load_dwordx2 s[12:13], s[0:1], 0x1c
	s_mov_b32 s4, s2
	s_ashr_i32 s5, s4, 31
	v_readfirstlane_b32 s2, v0
	s_lshl_b64 s[14:15], s[4:5], 8
	s_waitcnt lgkmcnt(0)
	s_ashr_i32 s19, s13, 31
	s_lshr_b32 s16, s2, 6
	s_mul_i32 s2, s14, s19
	s_mul_hi_u32 s6, s14, s13
	s_lshr_b64 s[4:5], s[4:5], 24
	s_add_i32 s2, s6, s2
	s_mul_i32 s4, s4, s13
	s_add_i32 s5, s2, s4
	s_mul_i32 s4, s14, s13
	s_lshl_b64 s[4:5], s[4:5], 1
	s_add_u32 s4, s20, s4
	s_addc_u32 s2, s21, s5
	s_mul_hi_i32 s9, s3, s13
	s_mul_i32 s8, s3, s13
	s_lshl_b32 s6, s13, 9
	s_and_b32 s5, s2, 0xffff
	s_lshl_b64 s[8:9], s[8:9], 9
	s_add_u32 s8, s22, s8
	s_addc_u32 s2, s23, s9
	;;#ASMSTART
	s_nop 4
	;;#ASMEND
	s_and_b32 s9, s2, 0xffff
	s_lshl_b32 s2, s16, 3
	v_lshlrev_b32_e32 v1, 4, v0
	v_and_b32_e32 v2, 32, v0
	s_and_b32 s2, s2, 0x7ffffff0
	v_lshrrev_b32_e32 v128, 2, v0
	s_lshl_b32 s22, s16, 10
	v_and_or_b32 v3, v128, 15, s2
	s_lshl_b32 s2, s16, 6
	v_bitop3_b32 v1, v1, v2, 48 bitop3:0x6c
	s_mov_b32 s7, 0x27000
	v_mul_lo_u32 v3, s13, v3
	v_and_or_b32 v1, s2, 64, v1
	s_add_i32 s23, s22, 0x10000
	s_mov_b32 s36, s8
	s_mov_b32 s37, s9
	s_mov_b32 s38, s6
	s_mov_b32 s39, s7
	v_lshl_add_u32 v132, v3, 1, v1
	s_mov_b32 s18, 0
	s_mov_b32 m0, s23
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[36:39], s18 offen lds
	;;#ASMEND
	s_add_i32 s24, s22, 0x12000
	s_lshl_b32 s17, s13, 7
	s_mov_b32 m0, s24
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[36:39], s17 offen lds
	;;#ASMEND
	s_mov_b32 m0, s22
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s18 offen lds
	;;#ASMEND
	s_add_i32 s25, s22, 0x2000
	s_mov_b32 m0, s25
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s17 offen lds
	;;#ASMEND
	s_add_i32 s26, s22, 0x14000
	s_lshl_b32 s18, s13, 8
	s_mov_b32 m0, s26
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[36:39], s18 offen lds
	;;#ASMEND
	s_add_i32 s27, s22, 0x16000
	s_mul_i32 s28, s13, 0x180
	s_mov_b32 m0, s27
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[36:39], s28 offen lds
	;;#ASMEND
	s_add_i32 s29, s22, 0x4000
	s_mov_b32 m0, s29
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s18 offen lds
	;;#ASMEND
	s_add_i32 s30, s22, 0x6000
	s_mov_b32 m0, s30
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s28 offen lds
	;;#ASMEND
	s_ashr_i32 s2, s16, 2
	s_mov_b32 s10, s6
	s_mov_b32 s11, s7
	s_cmp_lg_u32 s2, 1
	s_cbranch_scc1 .LBB0_2
	s_barrier
.LBB0_2:
	v_and_b32_e32 v129, 15, v0
	v_and_b32_e32 v1, 48, v0
	v_lshlrev_b32_e32 v0, 2, v0
	s_load_dwordx2 s[0:1], s[0:1], 0x10
	s_and_b32 s16, s16, 3
	v_lshl_or_b32 v1, v129, 6, v1
	v_and_b32_e32 v0, 32, v0
	s_lshl_b32 s6, s2, 13
	v_bitop3_b32 v130, s6, v1, v0 bitop3:0xf6
	s_lshl_b32 s6, s16, 12
	v_bitop3_b32 v0, v1, s6, v0 bitop3:0xde
	s_lshr_b32 s6, s19, 26
	s_add_i32 s6, s13, s6
	v_or_b32_e32 v131, 0x10000, v0
	s_ashr_i32 s19, s6, 6
	s_waitcnt vmcnt(4)
	s_barrier
	s_add_i32 s31, s22, 0x18000
	s_movk_i32 s20, 0x80
	s_mov_b32 m0, s31
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s20 offen lds
	;;#ASMEND
	s_add_i32 s33, s22, 0x1a000
	s_add_i32 s21, s17, 0x80
	s_mov_b32 m0, s33
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s21 offen lds
	;;#ASMEND
	s_add_i32 s34, s22, 0x8000
	s_mov_b32 s6, s10
	s_mov_b32 s7, s11
	s_mov_b32 m0, s34
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s20 offen lds
	;;#ASMEND
	s_add_i32 s35, s22, 0xa000
	s_mov_b32 m0, s35
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s21 offen lds
	;;#ASMEND
	s_add_i32 s36, s22, 0x1c000
	s_or_b32 s20, s18, 0x80
	s_mov_b32 m0, s36
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s20 offen lds
	;;#ASMEND
	s_add_i32 s37, s22, 0x1e000
	s_add_i32 s20, s28, 0x80
	s_mov_b32 m0, s37
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s20 offen lds
	;;#ASMEND
	s_waitcnt vmcnt(4)
	s_barrier
	s_add_i32 s21, s22, 0xc000
	s_add_i32 s20, s22, 0xe000
	s_cmpk_lt_i32 s13, 0xc0
	s_cbranch_scc1 .LBB0_5
	s_add_i32 s13, s19, -2
	s_mov_b32 s38, 0
	s_movk_i32 s39, 0x100
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
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 0
.LBB0_4:
	;;#ASMSTART
	ds_read_b128 v[134:137], v131 offset:0
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[138:141], v131 offset:0x400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[142:145], v131 offset:0x800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[146:149], v131 offset:0xc00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[150:153], v130 offset:0
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[154:157], v130 offset:0x400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0x800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0xc00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0x1000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0x1400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0x1800
	;;#ASMEND
	s_add_i32 s40, s18, s39
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0x1c00
	;;#ASMEND
	s_add_i32 s41, s40, 0xffffff80
	s_mov_b32 m0, s21
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s41 offen lds
	;;#ASMEND
	s_add_i32 s41, s28, s39
	s_add_i32 s42, s41, 0xffffff80
	s_mov_b32 m0, s20
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s42 offen lds
	;;#ASMEND
	s_waitcnt lgkmcnt(8)
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[124:127], v[150:153], v[134:137], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[150:153], v[142:145], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[158:161], v[134:137], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[158:161], v[142:145], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[166:169], v[134:137], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[166:169], v[142:145], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[174:177], v[134:137], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[174:177], v[142:145], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[124:127], v[154:157], v[138:141], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[154:157], v[146:149], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[162:165], v[138:141], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[162:165], v[146:149], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[170:173], v[138:141], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[170:173], v[146:149], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[178:181], v[138:141], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[178:181], v[146:149], v[96:99]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[182:185], v131 offset:0x4000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[186:189], v131 offset:0x4400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[190:193], v131 offset:0x4800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[194:197], v131 offset:0x4c00
	;;#ASMEND
	s_mov_b32 m0, s23
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s39 offen lds
	;;#ASMEND
	s_add_i32 s42, s17, s39
	s_mov_b32 m0, s24
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s42 offen lds
	;;#ASMEND
	s_add_i32 s38, s38, 2
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[92:95], v[150:153], v[182:185], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[150:153], v[190:193], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[158:161], v[182:185], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[158:161], v[190:193], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[166:169], v[182:185], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[166:169], v[190:193], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[174:177], v[182:185], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[174:177], v[190:193], v[64:67]
	v_mfma_f32_16x16x32_bf16 v[92:95], v[154:157], v[186:189], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[154:157], v[194:197], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[162:165], v[186:189], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[162:165], v[194:197], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[170:173], v[186:189], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[170:173], v[194:197], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[178:181], v[186:189], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[178:181], v[194:197], v[64:67]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[150:153], v130 offset:0x4000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[154:157], v130 offset:0x4400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0x4800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0x4c00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0x5000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0x5400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0x5800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0x5c00
	;;#ASMEND
	s_mov_b32 m0, s22
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s39 offen lds
	;;#ASMEND
	s_mov_b32 m0, s25
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s42 offen lds
	;;#ASMEND
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[60:63], v[150:153], v[134:137], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[150:153], v[142:145], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[158:161], v[134:137], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[158:161], v[142:145], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[166:169], v[134:137], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[166:169], v[142:145], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[174:177], v[134:137], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[174:177], v[142:145], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[60:63], v[154:157], v[138:141], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[154:157], v[146:149], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[162:165], v[138:141], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[162:165], v[146:149], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[170:173], v[138:141], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[170:173], v[146:149], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[178:181], v[138:141], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[178:181], v[146:149], v[32:35]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[134:137], v131 offset:0x8000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[138:141], v131 offset:0x8400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[142:145], v131 offset:0x8800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[146:149], v131 offset:0x8c00
	;;#ASMEND
	s_mov_b32 m0, s26
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s40 offen lds
	;;#ASMEND
	s_mov_b32 m0, s27
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s41 offen lds
	;;#ASMEND
	s_waitcnt vmcnt(6)
	s_barrier
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[28:31], v[150:153], v[182:185], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[150:153], v[190:193], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[158:161], v[182:185], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[158:161], v[190:193], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[166:169], v[182:185], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[166:169], v[190:193], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[174:177], v[182:185], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[174:177], v[190:193], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[28:31], v[154:157], v[186:189], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[154:157], v[194:197], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[162:165], v[186:189], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[162:165], v[194:197], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[170:173], v[186:189], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[170:173], v[194:197], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[178:181], v[186:189], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[178:181], v[194:197], v[0:3]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[150:153], v130 offset:0x8000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[154:157], v130 offset:0x8400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0x8800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0x8c00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0x9000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0x9400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0x9800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0x9c00
	;;#ASMEND
	s_mov_b32 m0, s29
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s40 offen lds
	;;#ASMEND
	s_mov_b32 m0, s30
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s41 offen lds
	;;#ASMEND
	s_waitcnt lgkmcnt(8)
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[124:127], v[150:153], v[134:137], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[150:153], v[142:145], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[158:161], v[134:137], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[158:161], v[142:145], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[166:169], v[134:137], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[166:169], v[142:145], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[174:177], v[134:137], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[174:177], v[142:145], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[124:127], v[154:157], v[138:141], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[154:157], v[146:149], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[162:165], v[138:141], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[162:165], v[146:149], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[170:173], v[138:141], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[170:173], v[146:149], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[178:181], v[138:141], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[178:181], v[146:149], v[96:99]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[182:185], v131 offset:0xc000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[186:189], v131 offset:0xc400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[190:193], v131 offset:0xc800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[194:197], v131 offset:0xcc00
	;;#ASMEND
	s_mov_b32 m0, s31
	s_add_i32 s43, s39, 0x80
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s43 offen lds
	;;#ASMEND
	s_addk_i32 s42, 0x80
	s_mov_b32 m0, s33
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s42 offen lds
	;;#ASMEND
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[92:95], v[150:153], v[182:185], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[150:153], v[190:193], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[158:161], v[182:185], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[158:161], v[190:193], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[166:169], v[182:185], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[166:169], v[190:193], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[174:177], v[182:185], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[174:177], v[190:193], v[64:67]
	v_mfma_f32_16x16x32_bf16 v[92:95], v[154:157], v[186:189], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[154:157], v[194:197], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[162:165], v[186:189], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[162:165], v[194:197], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[170:173], v[186:189], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[170:173], v[194:197], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[178:181], v[186:189], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[178:181], v[194:197], v[64:67]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[150:153], v130 offset:0xc000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[154:157], v130 offset:0xc400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0xc800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0xcc00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0xd000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0xd400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0xd800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0xdc00
	;;#ASMEND
	s_mov_b32 m0, s34
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s43 offen lds
	;;#ASMEND
	s_mov_b32 m0, s35
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s42 offen lds
	;;#ASMEND
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[60:63], v[150:153], v[134:137], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[150:153], v[142:145], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[158:161], v[134:137], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[158:161], v[142:145], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[166:169], v[134:137], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[166:169], v[142:145], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[174:177], v[134:137], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[174:177], v[142:145], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[60:63], v[154:157], v[138:141], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[154:157], v[146:149], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[162:165], v[138:141], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[162:165], v[146:149], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[170:173], v[138:141], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[170:173], v[146:149], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[178:181], v[138:141], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[178:181], v[146:149], v[32:35]
	s_setprio 0
	s_barrier
	s_mov_b32 m0, s36
	s_addk_i32 s40, 0x80
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s40 offen lds
	;;#ASMEND
	s_add_i32 s40, s41, 0x80
	s_mov_b32 m0, s37
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[8:11], s40 offen lds
	;;#ASMEND
	s_waitcnt vmcnt(4)
	s_barrier
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[28:31], v[150:153], v[182:185], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[150:153], v[190:193], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[158:161], v[182:185], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[158:161], v[190:193], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[166:169], v[182:185], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[166:169], v[190:193], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[174:177], v[182:185], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[174:177], v[190:193], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[28:31], v[154:157], v[186:189], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[154:157], v[194:197], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[162:165], v[186:189], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[162:165], v[194:197], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[170:173], v[186:189], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[170:173], v[194:197], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[178:181], v[186:189], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[178:181], v[194:197], v[0:3]
	s_setprio 0
	s_barrier
	s_addk_i32 s39, 0x100
	s_cmp_ge_i32 s38, s13
	s_cbranch_scc0 .LBB0_4
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v7, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v4, 0
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
.LBB0_6:
	;;#ASMSTART
	ds_read_b128 v[134:137], v131 offset:0
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[138:141], v131 offset:0x400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[142:145], v131 offset:0x800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[146:149], v131 offset:0xc00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[150:153], v130 offset:0
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[154:157], v130 offset:0x400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0x800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0xc00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0x1000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0x1400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0x1800
	;;#ASMEND
	s_lshl_b32 s6, s19, 7
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0x1c00
	;;#ASMEND
	s_add_i32 s6, s6, s18
	s_mov_b32 m0, s21
	s_add_i32 s8, s6, 0xffffff80
	s_mov_b32 s6, s10
	s_mov_b32 s7, s11
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s8 offen lds
	;;#ASMEND
	s_add_i32 s8, s8, s17
	s_mov_b32 m0, s20
	;;#ASMSTART
	s_nop 0
	buffer_load_dwordx4 v132, s[4:7], s8 offen lds
	;;#ASMEND
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[124:127], v[150:153], v[134:137], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[150:153], v[142:145], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[158:161], v[134:137], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[158:161], v[142:145], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[166:169], v[142:145], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[174:177], v[142:145], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[124:127], v[154:157], v[138:141], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[154:157], v[146:149], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[162:165], v[138:141], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[162:165], v[146:149], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[166:169], v[134:137], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[170:173], v[146:149], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[174:177], v[134:137], v[100:103]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[178:181], v[146:149], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[182:185], v[170:173], v[138:141], v[108:111]
	v_mfma_f32_16x16x32_bf16 v[186:189], v[178:181], v[138:141], v[100:103]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[100:103], v131 offset:0x4000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[108:111], v131 offset:0x4400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[190:193], v131 offset:0x4800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[194:197], v131 offset:0x4c00
	;;#ASMEND
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[92:95], v[150:153], v[100:103], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[150:153], v[190:193], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[158:161], v[100:103], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[158:161], v[190:193], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[166:169], v[100:103], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[166:169], v[190:193], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[92:95], v[154:157], v[108:111], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[154:157], v[194:197], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[162:165], v[108:111], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[162:165], v[194:197], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[170:173], v[108:111], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[170:173], v[194:197], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[174:177], v[100:103], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[174:177], v[190:193], v[64:67]
	v_mfma_f32_16x16x32_bf16 v[150:153], v[178:181], v[108:111], v[68:71]
	v_mfma_f32_16x16x32_bf16 v[154:157], v[178:181], v[194:197], v[64:67]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[64:67], v130 offset:0x4000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[68:71], v130 offset:0x4400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0x4800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0x4c00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0x5000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0x5400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0x5800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0x5c00
	;;#ASMEND
	s_waitcnt vmcnt(4)
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[52:55], v[158:161], v[134:137], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[158:161], v[142:145], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[174:177], v[134:137], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[174:177], v[142:145], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[60:63], v[64:67], v[134:137], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[64:67], v[142:145], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[162:165], v[138:141], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[162:165], v[146:149], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[166:169], v[134:137], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[166:169], v[142:145], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[178:181], v[138:141], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[178:181], v[146:149], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[198:201], v[68:71], v[138:141], v[60:63]
	v_mfma_f32_16x16x32_bf16 v[202:205], v[68:71], v[146:149], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[206:209], v[170:173], v[138:141], v[44:47]
	v_mfma_f32_16x16x32_bf16 v[210:213], v[170:173], v[146:149], v[40:43]
	s_setprio 0
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[24:27], v[64:67], v[190:193], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[158:161], v[190:193], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[166:169], v[100:103], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[166:169], v[190:193], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[174:177], v[100:103], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[174:177], v[190:193], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[28:31], v[64:67], v[100:103], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[68:71], v[194:197], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[158:161], v[100:103], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[162:165], v[194:197], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[170:173], v[108:111], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[170:173], v[194:197], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[178:181], v[108:111], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[178:181], v[194:197], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[132:135], v[68:71], v[108:111], v[28:31]
	v_mfma_f32_16x16x32_bf16 v[136:139], v[162:165], v[108:111], v[20:23]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[20:23], v131 offset:0x8000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[28:31], v131 offset:0x8400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[140:143], v131 offset:0x8800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[144:147], v131 offset:0x8c00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[56:59], v130 offset:0x8000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[64:67], v130 offset:0x8400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[158:161], v130 offset:0x8800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[162:165], v130 offset:0x8c00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[166:169], v130 offset:0x9000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[170:173], v130 offset:0x9400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[174:177], v130 offset:0x9800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[178:181], v130 offset:0x9c00
	;;#ASMEND
	s_waitcnt vmcnt(2)
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[40:43], v[56:59], v[20:23], v[124:127]
	v_mfma_f32_16x16x32_bf16 v[124:127], v[64:67], v[28:31], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[56:59], v[140:143], v[120:123]
	v_mfma_f32_16x16x32_bf16 v[120:123], v[64:67], v[144:147], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[158:161], v[20:23], v[116:119]
	v_mfma_f32_16x16x32_bf16 v[108:111], v[162:165], v[28:31], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[158:161], v[140:143], v[112:115]
	v_mfma_f32_16x16x32_bf16 v[100:103], v[162:165], v[144:147], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[166:169], v[20:23], v[182:185]
	v_mfma_f32_16x16x32_bf16 v[68:71], v[170:173], v[28:31], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[166:169], v[140:143], v[104:107]
	v_mfma_f32_16x16x32_bf16 v[60:63], v[170:173], v[144:147], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[174:177], v[20:23], v[186:189]
	v_mfma_f32_16x16x32_bf16 v[44:47], v[178:181], v[28:31], v[40:43]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[174:177], v[140:143], v[96:99]
	v_mfma_f32_16x16x32_bf16 v[40:43], v[178:181], v[144:147], v[40:43]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[182:185], v131 offset:0xc000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[186:189], v131 offset:0xc400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[190:193], v131 offset:0xc800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[194:197], v131 offset:0xcc00
	;;#ASMEND
	s_waitcnt vmcnt(0)
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[92:95], v[56:59], v[182:185], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[56:59], v[190:193], v[88:91]
	v_mfma_f32_16x16x32_bf16 v[96:99], v[64:67], v[194:197], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[158:161], v[182:185], v[84:87]
	v_mfma_f32_16x16x32_bf16 v[104:107], v[64:67], v[186:189], v[92:95]
	v_mfma_f32_16x16x32_bf16 v[92:95], v[162:165], v[186:189], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[158:161], v[190:193], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[84:87], v[162:165], v[194:197], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[166:169], v[182:185], v[76:79]
	v_mfma_f32_16x16x32_bf16 v[76:79], v[170:173], v[186:189], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[166:169], v[190:193], v[72:75]
	v_mfma_f32_16x16x32_bf16 v[72:75], v[170:173], v[194:197], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[174:177], v[182:185], v[150:153]
	v_mfma_f32_16x16x32_bf16 v[64:67], v[178:181], v[186:189], v[56:59]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[174:177], v[190:193], v[154:157]
	v_mfma_f32_16x16x32_bf16 v[56:59], v[178:181], v[194:197], v[56:59]
	s_setprio 0
	s_barrier
	;;#ASMSTART
	ds_read_b128 v[148:151], v130 offset:0xc000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[152:155], v130 offset:0xc400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[156:159], v130 offset:0xc800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[160:163], v130 offset:0xcc00
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[164:167], v130 offset:0xd000
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[168:171], v130 offset:0xd400
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[172:175], v130 offset:0xd800
	;;#ASMEND
	;;#ASMSTART
	ds_read_b128 v[176:179], v130 offset:0xdc00
	;;#ASMEND
	s_barrier
	s_waitcnt lgkmcnt(0)
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[80:83], v[148:151], v[20:23], v[198:201]
	v_mfma_f32_16x16x32_bf16 v[116:119], v[152:155], v[28:31], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[148:151], v[140:143], v[202:205]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[156:159], v[140:143], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[112:115], v[152:155], v[144:147], v[80:83]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[156:159], v[20:23], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[80:83], v[160:163], v[144:147], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[164:167], v[20:23], v[206:209]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[172:175], v[20:23], v[36:39]
	v_mfma_f32_16x16x32_bf16 v[88:91], v[160:163], v[28:31], v[52:55]
	v_mfma_f32_16x16x32_bf16 v[52:55], v[168:171], v[28:31], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[164:167], v[140:143], v[210:213]
	v_mfma_f32_16x16x32_bf16 v[28:31], v[176:179], v[28:31], v[20:23]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[172:175], v[140:143], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[48:51], v[168:171], v[144:147], v[48:51]
	v_mfma_f32_16x16x32_bf16 v[20:23], v[176:179], v[144:147], v[20:23]
	s_setprio 0
	s_setprio 1
	v_mfma_f32_16x16x32_bf16 v[32:35], v[148:151], v[182:185], v[132:135]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[148:151], v[190:193], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[36:39], v[152:155], v[186:189], v[32:35]
	v_mfma_f32_16x16x32_bf16 v[32:35], v[152:155], v[194:197], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[156:159], v[182:185], v[136:139]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[156:159], v[190:193], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[164:167], v[182:185], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[164:167], v[190:193], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[172:175], v[182:185], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[172:175], v[190:193], v[0:3]
	v_mfma_f32_16x16x32_bf16 v[24:27], v[160:163], v[186:189], v[24:27]
	v_mfma_f32_16x16x32_bf16 v[16:19], v[160:163], v[194:197], v[16:19]
	v_mfma_f32_16x16x32_bf16 v[12:15], v[168:171], v[186:189], v[12:15]
	v_mfma_f32_16x16x32_bf16 v[8:11], v[168:171], v[194:197], v[8:11]
	v_mfma_f32_16x16x32_bf16 v[4:7], v[176:179], v[186:189], v[4:7]
	v_mfma_f32_16x16x32_bf16 v[0:3], v[176:179], v[194:197], v[0:3]
	s_setprio 0
	s_barrier
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc0 .LBB0_8
	s_barrier
.LBB0_8:
	s_ashr_i32 s13, s12, 31
	s_mul_hi_u32 s4, s14, s12
	s_mul_i32 s5, s14, s13
	s_add_i32 s4, s4, s5
	s_mul_i32 s5, s15, s12
	s_add_i32 s5, s4, s5
	s_mul_i32 s4, s14, s12
	s_lshl_b64 s[4:5], s[4:5], 2
	s_add_u32 s4, s0, s4
	s_addc_u32 s5, s1, s5
	s_lshl_b32 s0, s3, 8
	s_ashr_i32 s1, s0, 31
	s_lshl_b64 s[0:1], s[0:1], 2
	v_and_b32_e32 v128, 12, v128
	s_add_u32 s0, s4, s0
	v_lshl_or_b32 v136, s2, 6, v128
	v_lshlrev_b32_e32 v128, 2, v129
	s_addc_u32 s1, s5, s1
	v_lshl_or_b32 v128, s16, 7, v128
	v_mov_b32_e32 v129, 0
	v_lshl_add_u64 v[128:129], s[0:1], 0, v[128:129]
	v_mad_i64_i32 v[130:131], s[0:1], v136, s12, 0
	v_lshl_add_u64 v[130:131], v[130:131], 2, v[128:129]
	s_lshl_b64 s[0:1], s[12:13], 2
	v_lshl_add_u64 v[132:133], v[130:131], 0, s[0:1]
	global_store_dword v[130:131], v124, off
	global_store_dword v[132:133], v125, off
	v_lshl_add_u64 v[124:125], v[132:133], 0, s[0:1]
	v_lshl_add_u64 v[134:135], v[124:125], 0, s[0:1]
	global_store_dword v[124:125], v126, off
	global_store_dword v[134:135], v127, off
	global_store_dword v[130:131], v120, off offset:64
	global_store_dword v[132:133], v121, off offset:64
	global_store_dword v[124:125], v122, off offset:64
	global_store_dword v[134:135], v123, off offset:64
	v_or_b32_e32 v120, 16, v136
	v_mad_i64_i32 v[120:121], s[2:3], v120, s12, 0
	v_lshl_add_u64 v[120:121], v[120:121], 2, v[128:129]
	v_lshl_add_u64 v[122:123], v[120:121], 0, s[0:1]
	global_store_dword v[120:121], v108, off
	global_store_dword v[122:123], v109, off
	v_lshl_add_u64 v[108:109], v[122:123], 0, s[0:1]
	v_lshl_add_u64 v[126:127], v[108:109], 0, s[0:1]
	global_store_dword v[108:109], v110, off
	global_store_dword v[126:127], v111, off
	global_store_dword v[120:121], v100, off offset:64
	global_store_dword v[122:123], v101, off offset:64
	global_store_dword v[108:109], v102, off offset:64
	global_store_dword v[126:127], v103, off offset:64
	v_or_b32_e32 v100, 32, v136
	v_mad_i64_i32 v[100:101], s[2:3], v100, s12, 0
	v_lshl_add_u64 v[100:101], v[100:101], 2, v[128:129]
	v_lshl_add_u64 v[102:103], v[100:101], 0, s[0:1]
	global_store_dword v[100:101], v68, off
	global_store_dword v[102:103], v69, off
	v_lshl_add_u64 v[68:69], v[102:103], 0, s[0:1]
	v_lshl_add_u64 v[110:111], v[68:69], 0, s[0:1]
	global_store_dword v[68:69], v70, off
	global_store_dword v[110:111], v71, off
	global_store_dword v[100:101], v60, off offset:64
	global_store_dword v[102:103], v61, off offset:64
	global_store_dword v[68:69], v62, off offset:64
	global_store_dword v[110:111], v63, off offset:64
	v_or_b32_e32 v60, 48, v136
	v_mad_i64_i32 v[60:61], s[2:3], v60, s12, 0
	v_lshl_add_u64 v[60:61], v[60:61], 2, v[128:129]
	v_lshl_add_u64 v[62:63], v[60:61], 0, s[0:1]
	global_store_dword v[60:61], v44, off
	global_store_dword v[62:63], v45, off
	v_lshl_add_u64 v[44:45], v[62:63], 0, s[0:1]
	v_lshl_add_u64 v[70:71], v[44:45], 0, s[0:1]
	global_store_dword v[44:45], v46, off
	global_store_dword v[70:71], v47, off
	global_store_dword v[60:61], v40, off offset:64
	global_store_dword v[62:63], v41, off offset:64
	global_store_dword v[44:45], v42, off offset:64
	global_store_dword v[70:71], v43, off offset:64
	global_store_dword v[130:131], v104, off offset:512
	global_store_dword v[132:133], v105, off offset:512
	global_store_dword v[124:125], v106, off offset:512
	global_store_dword v[134:135], v107, off offset:512
	global_store_dword v[130:131], v96, off offset:576
	global_store_dword v[132:133], v97, off offset:576
	global_store_dword v[124:125], v98, off offset:576
	global_store_dword v[134:135], v99, off offset:576
	global_store_dword v[120:121], v92, off offset:512
	global_store_dword v[122:123], v93, off offset:512
	global_store_dword v[108:109], v94, off offset:512
	global_store_dword v[126:127], v95, off offset:512
	global_store_dword v[120:121], v84, off offset:576
	global_store_dword v[122:123], v85, off offset:576
	global_store_dword v[108:109], v86, off offset:576
	global_store_dword v[126:127], v87, off offset:576
	global_store_dword v[100:101], v76, off offset:512
	global_store_dword v[102:103], v77, off offset:512
	global_store_dword v[68:69], v78, off offset:512
	global_store_dword v[110:111], v79, off offset:512
	global_store_dword v[100:101], v72, off offset:576
	global_store_dword v[102:103], v73, off offset:576
	global_store_dword v[68:69], v74, off offset:576
	global_store_dword v[110:111], v75, off offset:576
	global_store_dword v[60:61], v64, off offset:512
	global_store_dword v[62:63], v65, off offset:512
	global_store_dword v[44:45], v66, off offset:512
	global_store_dword v[70:71], v67, off offset:512
	global_store_dword v[60:61], v56, off offset:576
	global_store_dword v[62:63], v57, off offset:576
	global_store_dword v[44:45], v58, off offset:576
	global_store_dword v[70:71], v59, off offset:576
	v_add_u32_e32 v40, 0x80, v136
	v_add_u32_e32 v56, 0x90, v136
	v_mad_i64_i32 v[40:41], s[2:3], v40, s12, 0
	v_mad_i64_i32 v[56:57], s[2:3], v56, s12, 0
	v_lshl_add_u64 v[40:41], v[40:41], 2, v[128:129]
	v_lshl_add_u64 v[56:57], v[56:57], 2, v[128:129]
	v_add_u32_e32 v64, 0xa0, v136
	v_lshl_add_u64 v[42:43], v[40:41], 0, s[0:1]
	v_lshl_add_u64 v[58:59], v[56:57], 0, s[0:1]
	v_mad_i64_i32 v[64:65], s[2:3], v64, s12, 0
	v_lshl_add_u64 v[44:45], v[42:43], 0, s[0:1]
	v_lshl_add_u64 v[60:61], v[58:59], 0, s[0:1]
	v_lshl_add_u64 v[64:65], v[64:65], 2, v[128:129]
	v_lshl_add_u64 v[46:47], v[44:45], 0, s[0:1]
	v_lshl_add_u64 v[62:63], v[60:61], 0, s[0:1]
	v_lshl_add_u64 v[66:67], v[64:65], 0, s[0:1]
	global_store_dword v[40:41], v116, off
	global_store_dword v[42:43], v117, off
	global_store_dword v[44:45], v118, off
	global_store_dword v[46:47], v119, off
	global_store_dword v[40:41], v112, off offset:64
	global_store_dword v[42:43], v113, off offset:64
	global_store_dword v[44:45], v114, off offset:64
	global_store_dword v[46:47], v115, off offset:64
	global_store_dword v[56:57], v88, off
	global_store_dword v[58:59], v89, off
	global_store_dword v[60:61], v90, off
	global_store_dword v[62:63], v91, off
	global_store_dword v[56:57], v80, off offset:64
	global_store_dword v[58:59], v81, off offset:64
	global_store_dword v[60:61], v82, off offset:64
	global_store_dword v[62:63], v83, off offset:64
	global_store_dword v[64:65], v52, off
	global_store_dword v[66:67], v53, off
	v_lshl_add_u64 v[52:53], v[66:67], 0, s[0:1]
	v_lshl_add_u64 v[68:69], v[52:53], 0, s[0:1]
	global_store_dword v[52:53], v54, off
	global_store_dword v[68:69], v55, off
	global_store_dword v[64:65], v48, off offset:64
	global_store_dword v[66:67], v49, off offset:64
	global_store_dword v[52:53], v50, off offset:64
	global_store_dword v[68:69], v51, off offset:64
	v_add_u32_e32 v48, 0xb0, v136
	v_mad_i64_i32 v[48:49], s[2:3], v48, s12, 0
	v_lshl_add_u64 v[48:49], v[48:49], 2, v[128:129]
	v_lshl_add_u64 v[50:51], v[48:49], 0, s[0:1]
	global_store_dword v[48:49], v28, off
	global_store_dword v[50:51], v29, off
	v_lshl_add_u64 v[28:29], v[50:51], 0, s[0:1]
	v_lshl_add_u64 v[54:55], v[28:29], 0, s[0:1]
	global_store_dword v[28:29], v30, off
	global_store_dword v[54:55], v31, off
	global_store_dword v[48:49], v20, off offset:64
	global_store_dword v[50:51], v21, off offset:64
	global_store_dword v[28:29], v22, off offset:64
	global_store_dword v[54:55], v23, off offset:64
	global_store_dword v[40:41], v36, off offset:512
	global_store_dword v[42:43], v37, off offset:512
	global_store_dword v[44:45], v38, off offset:512
	global_store_dword v[46:47], v39, off offset:512
	global_store_dword v[40:41], v32, off offset:576
	global_store_dword v[42:43], v33, off offset:576
	global_store_dword v[44:45], v34, off offset:576
	global_store_dword v[46:47], v35, off offset:576
	global_store_dword v[56:57], v24, off offset:512
	global_store_dword v[58:59], v25, off offset:512
	global_store_dword v[60:61], v26, off offset:512
	global_store_dword v[62:63], v27, off offset:512
	global_store_dword v[56:57], v16, off offset:576
	global_store_dword v[58:59], v17, off offset:576
	global_store_dword v[60:61], v18, off offset:576
	global_store_dword v[62:63], v19, off offset:576
	global_store_dword v[64:65], v12, off offset:512
	global_store_dword v[66:67], v13, off offset:512
	global_store_dword v[52:53], v14, off offset:512
	global_store_dword v[68:69], v15, off offset:512
	global_store_dword v[64:65], v8, off offset:576
	global_store_dword v[66:67], v9, off offset:576
	global_store_dword v[52:53], v10, off offset:576
	global_store_dword v[68:69], v11, off offset:576
	global_store_dword v[48:49], v4, off offset:512
	global_store_dword v[50:51], v5, off offset:512
	global_store_dword v[28:29], v6, off offset:512
	global_store_dword v[54:55], v7, off offset:512
	global_store_dword v[48:49], v0, off offset:576
	global_store_dword v[50:51], v1, off offset:576
	global_store_dword v[28:29], v2, off offset:576
	global_store_dword v[54:55], v3, off offset:576
	s_endpgm
	.section	.rodata,"a",@progbits
	.amdhsa_kernel pingpong
		.amdhsa_group_segment_fixed_size 131072
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 36
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 214
		.amdhsa_next_free_sgpr 96
		.amdhsa_accum_offset 216
		.amdhsa_reserve_vcc 0
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end0:
	.section	.AMDGPU.csdata,"",@progbits
	.text
	.section	.AMDGPU.gpr_maximums,"",@progbits
	.text
	.type	__hip_cuid_,@object
	.section	.bss,"aw",@nobits
__hip_cuid_:
	.byte	0
	.section	".note.GNU-stack","",@progbits
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
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
    .name:           pingpong
    .private_segment_fixed_size: 0
    .sgpr_count:     50
    .sgpr_spill_count: 0
    .symbol:         pingpong.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     214
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx950
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
