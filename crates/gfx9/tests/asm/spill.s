	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	.amdhsa_code_object_version 6
	.text
	.type	spill,@function
spill:
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dword s2, s[0:1], 0x10
	v_mov_b32_e32 v60, v0
	v_lshlrev_b32_e32 v2, 2, v60
	v_mov_b32_e32 v3, 0
	s_waitcnt lgkmcnt(0)
	global_load_dword v18, v2, s[6:7]
	global_load_dword v1, v2, s[6:7] offset:256
	global_load_dword v0, v2, s[6:7] offset:512
	v_lshl_add_u64 v[8:9], s[6:7], 0, v[2:3]
	s_movk_i32 s0, 0x1000
	v_add_co_u32_e32 v6, vcc, s0, v8
	s_movk_i32 s0, 0x2000
	s_nop 0
	v_addc_co_u32_e32 v7, vcc, 0, v9, vcc
	v_add_co_u32_e32 v4, vcc, s0, v8
	s_movk_i32 s0, 0x3000
	s_nop 0
	v_addc_co_u32_e32 v5, vcc, 0, v9, vcc
	s_cmp_lt_i32 s2, 1
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:64
	global_load_dword v1, v2, s[6:7] offset:768
	s_nop 0
	global_load_dword v0, v2, s[6:7] offset:1024
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:56
	global_load_dword v1, v2, s[6:7] offset:1280
	s_nop 0
	global_load_dword v0, v2, s[6:7] offset:1536
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:48
	global_load_dword v19, v2, s[6:7] offset:1792
	s_nop 0
	global_load_dword v1, v2, s[6:7] offset:2048
	global_load_dword v0, v2, s[6:7] offset:2304
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off
	global_load_dword v1, v2, s[6:7] offset:2560
	s_nop 0
	global_load_dword v0, v2, s[6:7] offset:2816
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:40
	global_load_dword v35, v2, s[6:7] offset:3072
	global_load_dword v34, v2, s[6:7] offset:3328
	global_load_dword v3, v2, s[6:7] offset:3584
	s_nop 0
	global_load_dword v1, v2, s[6:7] offset:3840
	global_load_dword v51, v[6:7], off offset:256
	global_load_dword v50, v[6:7], off offset:512
	global_load_dword v31, v[6:7], off offset:768
	global_load_dword v30, v[6:7], off offset:1024
	s_nop 0
	global_load_dword v2, v[6:7], off offset:1280
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[2:3], off offset:192
	global_load_dword v23, v[6:7], off offset:1536
	global_load_dword v22, v[6:7], off offset:1792
	global_load_dword v25, v[6:7], off offset:2048
	global_load_dword v24, v[6:7], off offset:2304
	global_load_dword v11, v[6:7], off offset:2560
	global_load_dword v10, v[6:7], off offset:2816
	global_load_dword v3, v[6:7], off offset:3072
	global_load_dword v27, v[6:7], off offset:3328
	global_load_dword v26, v[6:7], off offset:3584
	global_load_dword v63, v[6:7], off offset:3840
	global_load_dword v0, v[4:5], off offset:-4096
	v_add_co_u32_e32 v6, vcc, s0, v8
	global_load_dword v62, v[4:5], off
	global_load_dword v59, v[4:5], off offset:256
	global_load_dword v58, v[4:5], off offset:512
	global_load_dword v2, v[4:5], off offset:768
	v_addc_co_u32_e32 v7, vcc, 0, v9, vcc
	s_movk_i32 s0, 0x4000
	s_waitcnt vmcnt(4)
	scratch_store_dwordx2 off, v[0:1], off offset:184
	global_load_dword v53, v[4:5], off offset:1024
	global_load_dword v52, v[4:5], off offset:1280
	s_nop 0
	global_load_dword v1, v[4:5], off offset:1536
	global_load_dword v0, v[4:5], off offset:1792
	s_waitcnt vmcnt(5)
	scratch_store_dwordx2 off, v[2:3], off offset:200
	s_waitcnt vmcnt(1)
	scratch_store_dwordx2 off, v[0:1], off offset:464
	global_load_dword v1, v[4:5], off offset:2048
	s_nop 0
	global_load_dword v0, v[4:5], off offset:2304
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:456
	global_load_dword v1, v[4:5], off offset:2560
	s_nop 0
	global_load_dword v0, v[4:5], off offset:2816
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:480
	global_load_dword v1, v[4:5], off offset:3072
	s_nop 0
	global_load_dword v0, v[4:5], off offset:3328
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:472
	global_load_dword v1, v[4:5], off offset:3584
	s_nop 0
	global_load_dword v0, v[4:5], off offset:3840
	v_add_co_u32_e32 v4, vcc, s0, v8
	s_movk_i32 s0, 0x5000
	s_nop 0
	v_addc_co_u32_e32 v5, vcc, 0, v9, vcc
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:384
	global_load_dword v1, v[6:7], off offset:512
	s_nop 0
	global_load_dword v0, v[6:7], off offset:768
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:376
	global_load_dword v1, v[6:7], off offset:1024
	s_nop 0
	global_load_dword v0, v[6:7], off offset:1280
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:16
	global_load_dword v1, v[6:7], off offset:1536
	s_nop 0
	global_load_dword v0, v[6:7], off offset:1792
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:32
	global_load_dword v1, v[6:7], off offset:2048
	s_nop 0
	global_load_dword v0, v[6:7], off offset:2304
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:24
	global_load_dword v1, v[6:7], off offset:2560
	s_nop 0
	global_load_dword v0, v[6:7], off offset:2816
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:368
	global_load_dword v1, v[6:7], off offset:3072
	s_nop 0
	global_load_dword v0, v[6:7], off offset:3328
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:352
	global_load_dword v55, v[6:7], off offset:3584
	global_load_dword v54, v[6:7], off offset:3840
	global_load_dword v14, v[6:7], off offset:256
	global_load_dword v15, v[4:5], off offset:-4096
	global_load_dword v41, v[4:5], off
	global_load_dword v40, v[4:5], off offset:256
	global_load_dword v47, v[4:5], off offset:512
	global_load_dword v46, v[4:5], off offset:768
	global_load_dword v45, v[4:5], off offset:1024
	global_load_dword v44, v[4:5], off offset:1280
	global_load_dword v43, v[4:5], off offset:1536
	global_load_dword v42, v[4:5], off offset:1792
	global_load_dword v37, v[4:5], off offset:2048
	global_load_dword v36, v[4:5], off offset:2304
	global_load_dword v29, v[4:5], off offset:2560
	global_load_dword v28, v[4:5], off offset:2816
	global_load_dword v17, v[4:5], off offset:3072
	global_load_dword v16, v[4:5], off offset:3328
	global_load_dword v39, v[4:5], off offset:3584
	global_load_dword v38, v[4:5], off offset:3840
	v_add_co_u32_e32 v6, vcc, s0, v8
	s_movk_i32 s0, 0x7000
	s_nop 0
	v_addc_co_u32_e32 v7, vcc, 0, v9, vcc
	global_load_dword v33, v[6:7], off offset:3072
	global_load_dword v32, v[6:7], off offset:3328
	v_add_co_u32_e32 v4, vcc, s0, v8
	s_movk_i32 s0, 0x6000
	s_nop 0
	v_addc_co_u32_e32 v5, vcc, 0, v9, vcc
	global_load_dword v3, v[6:7], off offset:1024
	global_load_dword v2, v[6:7], off offset:1280
	global_load_dword v57, v[6:7], off offset:1536
	global_load_dword v56, v[6:7], off offset:1792
	global_load_dword v49, v[6:7], off offset:2048
	global_load_dword v48, v[6:7], off offset:2304
	s_waitcnt vmcnt(8)
	scratch_store_dwordx2 off, v[38:39], off offset:168
	scratch_store_dwordx2 off, v[40:41], off offset:176
	scratch_store_dwordx2 off, v[8:9], off offset:360
	s_waitcnt vmcnt(9)
	scratch_store_dwordx2 off, v[32:33], off offset:416
	global_load_dword v33, v[6:7], off offset:3584
	s_nop 0
	global_load_dword v32, v[6:7], off offset:3840
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[32:33], off offset:408
	global_load_dword v33, v[4:5], off
	s_nop 0
	global_load_dword v32, v[4:5], off offset:256
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[32:33], off offset:400
	global_load_dword v33, v[4:5], off offset:512
	s_nop 0
	global_load_dword v0, v[6:7], off offset:2816
	global_load_dword v1, v[6:7], off offset:2560
	global_load_dword v32, v[4:5], off offset:768
	s_waitcnt vmcnt(1)
	scratch_store_dwordx2 off, v[0:1], off offset:96
	global_load_dword v0, v[6:7], off offset:768
	s_nop 0
	global_load_dword v1, v[6:7], off offset:512
	s_waitcnt vmcnt(3)
	scratch_store_dwordx2 off, v[32:33], off offset:392
	s_waitcnt vmcnt(1)
	scratch_store_dwordx2 off, v[0:1], off offset:152
	global_load_dword v0, v[6:7], off offset:256
	v_add_co_u32_e32 v6, vcc, s0, v8
	s_mov_b32 s0, 0
	s_nop 0
	v_addc_co_u32_e32 v7, vcc, 0, v9, vcc
	global_load_dword v1, v[6:7], off offset:-4096
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:160
	global_load_dword v1, v[6:7], off
	s_nop 0
	global_load_dword v0, v[6:7], off offset:256
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:144
	global_load_dword v1, v[6:7], off offset:512
	s_nop 0
	global_load_dword v0, v[6:7], off offset:768
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:136
	global_load_dword v1, v[6:7], off offset:1024
	s_nop 0
	global_load_dword v0, v[6:7], off offset:1280
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:128
	global_load_dword v1, v[6:7], off offset:1536
	s_nop 0
	global_load_dword v0, v[6:7], off offset:1792
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:120
	global_load_dword v1, v[6:7], off offset:2048
	s_nop 0
	global_load_dword v0, v[6:7], off offset:2304
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:112
	global_load_dword v1, v[6:7], off offset:2560
	s_nop 0
	global_load_dword v0, v[6:7], off offset:2816
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:104
	global_load_dword v1, v[6:7], off offset:3072
	s_nop 0
	global_load_dword v0, v[6:7], off offset:3328
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[0:1], off offset:448
	global_load_dword v1, v[6:7], off offset:3584
	s_nop 0
	global_load_dword v0, v[6:7], off offset:3840
	s_nop 0
	global_load_dword v7, v[4:5], off offset:1024
	global_load_dword v6, v[4:5], off offset:1280
	s_waitcnt vmcnt(2)
	scratch_store_dwordx2 off, v[0:1], off offset:440
	s_waitcnt vmcnt(1)
	scratch_store_dwordx2 off, v[6:7], off offset:88
	global_load_dword v7, v[4:5], off offset:1536
	s_nop 0
	global_load_dword v6, v[4:5], off offset:1792
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[6:7], off offset:80
	global_load_dword v7, v[4:5], off offset:2048
	s_nop 0
	global_load_dword v6, v[4:5], off offset:2304
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[6:7], off offset:72
	global_load_dword v7, v[4:5], off offset:2560
	s_nop 0
	global_load_dword v6, v[4:5], off offset:2816
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[6:7], off offset:8
	global_load_dword v7, v[4:5], off offset:3072
	s_nop 0
	global_load_dword v6, v[4:5], off offset:3328
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[6:7], off offset:432
	global_load_dword v7, v[4:5], off offset:3584
	s_nop 0
	global_load_dword v6, v[4:5], off offset:3840
	s_waitcnt vmcnt(0)
	scratch_store_dwordx2 off, v[6:7], off offset:424
	s_cbranch_scc1 .LBB0_4
	scratch_store_dwordx2 off, v[60:61], off offset:488
	scratch_store_dwordx2 off, v[48:49], off offset:208
	scratch_store_dwordx2 off, v[56:57], off offset:216
	scratch_store_dwordx2 off, v[2:3], off offset:224
	scratch_store_dwordx2 off, v[16:17], off offset:232
	scratch_store_dwordx2 off, v[28:29], off offset:344
	scratch_store_dwordx2 off, v[36:37], off offset:280
	scratch_store_dwordx2 off, v[42:43], off offset:312
	scratch_store_dwordx2 off, v[44:45], off offset:320
	scratch_store_dwordx2 off, v[46:47], off offset:328
	scratch_store_dwordx2 off, v[62:63], off offset:240
	scratch_store_dwordx2 off, v[30:31], off offset:288
	scratch_store_dwordx2 off, v[10:11], off offset:248
	scratch_store_dwordx2 off, v[58:59], off offset:296
	scratch_store_dwordx2 off, v[50:51], off offset:256
	scratch_store_dwordx2 off, v[22:23], off offset:264
	scratch_store_dwordx2 off, v[26:27], off offset:304
	scratch_store_dwordx2 off, v[54:55], off offset:272
	scratch_load_dwordx2 v[40:41], off, off
	scratch_load_dwordx2 v[32:33], off, off offset:392
	scratch_load_dwordx2 v[44:45], off, off offset:400
	scratch_load_dwordx2 v[46:47], off, off offset:408
	scratch_load_dwordx2 v[48:49], off, off offset:416
	scratch_load_dwordx2 v[54:55], off, off offset:424
	scratch_load_dwordx2 v[56:57], off, off offset:432
	scratch_load_dwordx2 v[4:5], off, off offset:8
	scratch_load_dwordx2 v[36:37], off, off offset:440
	scratch_load_dwordx2 v[62:63], off, off offset:448
	scratch_load_dwordx2 v[6:7], off, off offset:456
	scratch_load_dwordx2 v[8:9], off, off offset:464
	scratch_load_dwordx2 v[42:43], off, off offset:352
	scratch_load_dwordx2 v[22:23], off, off offset:368
	scratch_load_dwordx2 v[0:1], off, off offset:16
	scratch_load_dwordx2 v[26:27], off, off offset:376
	scratch_load_dwordx2 v[28:29], off, off offset:384
	scratch_load_dwordx2 v[30:31], off, off offset:472
	scratch_load_dwordx2 v[38:39], off, off offset:480
	v_mov_b64_e32 v[12:13], v[18:19]
	scratch_store_dwordx2 off, v[34:35], off offset:336
.LBB0_2:
	v_mov_b64_e32 v[16:17], v[12:13]
	scratch_load_dwordx2 v[12:13], off, off offset:360
	s_ashr_i32 s1, s0, 31
	scratch_load_dwordx2 v[2:3], off, off offset:192
	s_waitcnt vmcnt(14)
	scratch_store_dwordx2 off, v[4:5], off offset:8
	scratch_store_dwordx2 off, v[40:41], off
	v_mov_b32_e32 v4, v17
	s_waitcnt vmcnt(8)
	v_pk_mov_b32 v[50:51], v[0:1], v[26:27] op_sel:[1,0]
	s_waitcnt vmcnt(6)
	v_pk_mov_b32 v[10:11], v[28:29], v[30:31] op_sel:[1,0]
	s_add_i32 s2, s2, -1
	scratch_load_dwordx2 v[40:41], off, off offset:144
	scratch_load_dwordx2 v[20:21], off, off offset:280
	s_waitcnt vmcnt(5)
	v_lshl_add_u64 v[34:35], s[0:1], 2, v[12:13]
	global_load_dword v58, v[34:35], off
	scratch_load_dwordx2 v[12:13], off, off offset:200
	s_waitcnt vmcnt(6)
	v_mov_b32_e32 v5, v3
	v_pk_mov_b32 v[34:35], v[26:27], v[14:15] op_sel:[1,0]
	s_add_i32 s0, s0, 64
	s_cmp_eq_u32 s2, 0
	s_waitcnt vmcnt(1)
	v_pk_fma_f32 v[16:17], v[58:59], v[16:17], v[4:5] op_sel_hi:[0,1,1]
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[4:5], v[12:13], v[2:3] op_sel:[1,0]
	v_pk_fma_f32 v[34:35], v[58:59], v[38:39], v[34:35] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[2:3], v[58:59], v[2:3], v[4:5] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[2:3], off offset:192
	v_pk_mov_b32 v[4:5], v[38:39], v[12:13] op_sel:[1,0]
	v_pk_mov_b32 v[2:3], v[30:31], v[38:39] op_sel:[1,0]
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[4:5] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[2:3], off offset:352
	scratch_load_dwordx2 v[2:3], off, off offset:32
	v_pk_fma_f32 v[30:31], v[58:59], v[30:31], v[50:51] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[12:13], off offset:200
	scratch_load_dwordx2 v[4:5], off, off offset:24
	v_pk_mov_b32 v[50:51], v[14:15], v[28:29] op_sel:[1,0]
	scratch_load_dwordx2 v[12:13], off, off offset:272
	v_pk_fma_f32 v[10:11], v[58:59], v[8:9], v[10:11] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[50:51], v[58:59], v[6:7], v[50:51] op_sel_hi:[0,1,1]
	s_waitcnt vmcnt(3)
	v_pk_mov_b32 v[60:61], v[2:3], v[0:1] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[28:29], v[58:59], v[28:29], v[60:61] op_sel_hi:[0,1,1]
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[4:5], v[2:3] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[14:15], v[58:59], v[14:15], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[22:23], v[4:5] op_sel:[1,0]
	v_mov_b64_e32 v[38:39], v[14:15]
	v_pk_fma_f32 v[26:27], v[58:59], v[26:27], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[42:43], v[22:23] op_sel:[1,0]
	scratch_load_dwordx2 v[14:15], off, off offset:328
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[60:61] op_sel_hi:[0,1,1]
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[12:13], v[42:43] op_sel:[1,0]
	scratch_store_dwordx2 off, v[0:1], off offset:16
	v_pk_fma_f32 v[2:3], v[58:59], v[2:3], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[2:3], off offset:32
	v_mov_b64_e32 v[2:3], v[54:55]
	v_mov_b64_e32 v[54:55], v[32:33]
	scratch_load_dwordx2 v[32:33], off, off offset:176
	v_mov_b64_e32 v[0:1], v[48:49]
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[32:33], v[12:13] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[4:5], v[58:59], v[4:5], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[14:15], v[32:33] op_sel:[1,0]
	scratch_store_dwordx2 off, v[4:5], off offset:24
	v_pk_fma_f32 v[18:19], v[58:59], v[22:23], v[60:61] op_sel_hi:[0,1,1]
	v_mov_b64_e32 v[22:23], v[46:47]
	v_mov_b64_e32 v[46:47], v[30:31]
	scratch_load_dwordx2 v[30:31], off, off offset:320
	v_mov_b64_e32 v[4:5], v[56:57]
	v_mov_b64_e32 v[56:57], v[4:5]
	scratch_load_dwordx2 v[4:5], off, off offset:8
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[30:31], v[14:15] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[42:43], v[58:59], v[42:43], v[60:61] op_sel_hi:[0,1,1]
	v_mov_b64_e32 v[48:49], v[42:43]
	v_mov_b64_e32 v[42:43], v[26:27]
	scratch_load_dwordx2 v[26:27], off, off offset:312
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[26:27], v[30:31] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[20:21], v[26:27] op_sel:[1,0]
	scratch_store_dwordx2 off, v[12:13], off offset:272
	v_pk_fma_f32 v[32:33], v[58:59], v[32:33], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[32:33], off offset:176
	v_mov_b64_e32 v[32:33], v[54:55]
	scratch_load_dwordx2 v[54:55], off, off offset:344
	scratch_load_dwordx2 v[12:13], off, off offset:168
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[54:55], v[20:21] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[14:15], v[58:59], v[14:15], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[14:15], off offset:328
	scratch_load_dwordx2 v[14:15], off, off offset:232
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[14:15], v[54:55] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[30:31], v[58:59], v[30:31], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[12:13], v[14:15] op_sel:[1,0]
	scratch_store_dwordx2 off, v[30:31], off offset:320
	v_pk_fma_f32 v[26:27], v[58:59], v[26:27], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[26:27], off offset:312
	v_mov_b64_e32 v[26:27], v[42:43]
	v_mov_b64_e32 v[42:43], v[48:49]
	v_mov_b64_e32 v[48:49], v[0:1]
	scratch_load_dwordx2 v[0:1], off, off offset:160
	v_mov_b64_e32 v[30:31], v[46:47]
	v_mov_b64_e32 v[46:47], v[22:23]
	v_mov_b64_e32 v[22:23], v[18:19]
	scratch_load_dwordx2 v[18:19], off, off offset:224
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[0:1], v[12:13] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[20:21], v[58:59], v[20:21], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[20:21], off offset:280
	scratch_load_dwordx2 v[20:21], off, off offset:152
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[20:21], v[0:1] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[54:55], v[58:59], v[54:55], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[18:19], v[20:21] op_sel:[1,0]
	scratch_store_dwordx2 off, v[54:55], off offset:344
	v_pk_fma_f32 v[14:15], v[58:59], v[14:15], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[14:15], off offset:232
	scratch_load_dwordx2 v[14:15], off, off offset:216
	v_mov_b64_e32 v[54:55], v[2:3]
	scratch_load_dwordx2 v[2:3], off, off offset:112
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[14:15], v[18:19] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[12:13], off offset:168
	scratch_load_dwordx2 v[12:13], off, off offset:208
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[12:13], v[14:15] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[0:1], off offset:160
	scratch_load_dwordx2 v[0:1], off, off offset:96
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[0:1], v[12:13] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[20:21], v[58:59], v[20:21], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[48:49], v[0:1] op_sel:[1,0]
	scratch_store_dwordx2 off, v[20:21], off offset:152
	v_pk_fma_f32 v[18:19], v[58:59], v[18:19], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[18:19], off offset:224
	scratch_load_dwordx2 v[18:19], off, off offset:136
	v_pk_mov_b32 v[60:61], v[46:47], v[48:49] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[14:15], v[58:59], v[14:15], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[40:41], v[46:47] op_sel:[1,0]
	scratch_store_dwordx2 off, v[14:15], off offset:216
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[60:61] op_sel_hi:[0,1,1]
	scratch_load_dwordx2 v[14:15], off, off offset:128
	s_waitcnt vmcnt(2)
	v_pk_mov_b32 v[60:61], v[18:19], v[40:41] op_sel:[1,0]
	scratch_store_dwordx2 off, v[12:13], off offset:208
	scratch_load_dwordx2 v[12:13], off, off offset:120
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[0:1], off offset:96
	scratch_load_dwordx2 v[0:1], off, off offset:104
	s_waitcnt vmcnt(4)
	v_pk_mov_b32 v[60:61], v[14:15], v[18:19] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[48:49], v[58:59], v[48:49], v[60:61] op_sel_hi:[0,1,1]
	s_waitcnt vmcnt(2)
	v_pk_mov_b32 v[60:61], v[12:13], v[14:15] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[46:47], v[58:59], v[46:47], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[2:3], v[12:13] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[40:41], v[58:59], v[40:41], v[60:61] op_sel_hi:[0,1,1]
	s_waitcnt vmcnt(0)
	v_pk_mov_b32 v[60:61], v[0:1], v[2:3] op_sel:[1,0]
	scratch_store_dwordx2 off, v[40:41], off offset:144
	v_pk_fma_f32 v[18:19], v[58:59], v[18:19], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[62:63], v[0:1] op_sel:[1,0]
	scratch_store_dwordx2 off, v[18:19], off offset:136
	v_pk_fma_f32 v[14:15], v[58:59], v[14:15], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[36:37], v[62:63] op_sel:[1,0]
	scratch_load_dwordx2 v[18:19], off, off offset:72
	scratch_load_dwordx2 v[40:41], off, off
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[44:45], v[36:37] op_sel:[1,0]
	scratch_store_dwordx2 off, v[14:15], off offset:128
	v_pk_fma_f32 v[2:3], v[58:59], v[2:3], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[32:33], v[44:45] op_sel:[1,0]
	scratch_store_dwordx2 off, v[2:3], off offset:112
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[60:61] op_sel_hi:[0,1,1]
	scratch_load_dwordx2 v[2:3], off, off offset:88
	scratch_load_dwordx2 v[14:15], off, off offset:304
	s_waitcnt vmcnt(1)
	v_pk_mov_b32 v[60:61], v[2:3], v[32:33] op_sel:[1,0]
	scratch_store_dwordx2 off, v[0:1], off offset:104
	scratch_load_dwordx2 v[0:1], off, off offset:80
	v_pk_fma_f32 v[62:63], v[58:59], v[62:63], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[12:13], off offset:120
	scratch_load_dwordx2 v[12:13], off, off offset:264
	s_waitcnt vmcnt(2)
	v_pk_mov_b32 v[60:61], v[0:1], v[2:3] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[36:37], v[58:59], v[36:37], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[18:19], v[0:1] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[44:45], v[58:59], v[44:45], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[4:5], v[18:19] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[32:33], v[58:59], v[32:33], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[56:57], v[4:5] op_sel:[1,0]
	s_nop 0
	v_pk_fma_f32 v[2:3], v[58:59], v[2:3], v[60:61] op_sel_hi:[0,1,1]
	v_pk_mov_b32 v[60:61], v[54:55], v[56:57] op_sel:[1,0]
	scratch_store_dwordx2 off, v[2:3], off offset:88
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[0:1], off offset:80
	scratch_load_dwordx2 v[0:1], off, off offset:184
	s_nop 0
	scratch_load_dwordx2 v[2:3], off, off offset:352
	s_waitcnt vmcnt(0)
	v_pk_fma_f32 v[20:21], v[58:59], v[52:53], v[2:3] op_sel_hi:[0,1,1]
	v_mov_b64_e32 v[2:3], v[36:37]
	scratch_load_dwordx2 v[36:37], off, off offset:64
	s_waitcnt vmcnt(0)
	v_pk_fma_f32 v[36:37], v[58:59], v[36:37], v[40:41] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[40:41], v[58:59], v[40:41], v[0:1] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[12:13] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[14:15] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[14:15], v[58:59], v[14:15], v[52:53] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[0:1], off offset:184
	scratch_store_dwordx2 off, v[12:13], off offset:264
	scratch_store_dwordx2 off, v[14:15], off offset:304
	v_mov_b64_e32 v[14:15], v[38:39]
	v_mov_b64_e32 v[38:39], v[34:35]
	scratch_load_dwordx2 v[0:1], off, off offset:40
	scratch_load_dwordx2 v[12:13], off, off offset:256
	v_mov_b64_e32 v[34:35], v[62:63]
	scratch_load_dwordx2 v[62:63], off, off offset:56
	v_mov_b32_e32 v53, v54
	v_mov_b32_e32 v52, v16
	v_pk_fma_f32 v[18:19], v[58:59], v[18:19], v[52:53] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[18:19], off offset:72
	scratch_store_dwordx2 off, v[36:37], off offset:64
	v_pk_fma_f32 v[4:5], v[58:59], v[4:5], v[36:37] op_sel_hi:[0,1,1]
	v_mov_b64_e32 v[36:37], v[2:3]
	v_mov_b32_e32 v52, v20
	v_mov_b32_e32 v53, v21
	s_waitcnt vmcnt(2)
	v_pk_fma_f32 v[62:63], v[58:59], v[62:63], v[0:1] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[0:1], v[58:59], v[0:1], v[12:13] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[24:25] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[12:13], off offset:256
	scratch_load_dwordx2 v[12:13], off, off offset:240
	v_pk_fma_f32 v[56:57], v[58:59], v[56:57], v[62:63] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[0:1], off offset:40
	scratch_load_dwordx2 v[0:1], off, off offset:16
	s_waitcnt vmcnt(2)
	v_pk_fma_f32 v[24:25], v[58:59], v[24:25], v[12:13] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[8:9] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[12:13], off offset:240
	scratch_load_dwordx2 v[8:9], off, off offset:336
	scratch_load_dwordx2 v[60:61], off, off offset:48
	s_waitcnt vmcnt(0)
	v_pk_fma_f32 v[60:61], v[58:59], v[60:61], v[8:9] op_sel_hi:[0,1,1]
	scratch_load_dwordx2 v[12:13], off, off offset:288
	v_pk_fma_f32 v[54:55], v[58:59], v[54:55], v[60:61] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[62:63], off offset:56
	v_mov_b64_e32 v[62:63], v[34:35]
	scratch_store_dwordx2 off, v[60:61], off offset:48
	s_waitcnt vmcnt(2)
	v_pk_fma_f32 v[8:9], v[58:59], v[8:9], v[12:13] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[8:9], off offset:336
	scratch_load_dwordx2 v[8:9], off, off offset:248
	s_waitcnt vmcnt(0)
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[8:9] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[12:13], off offset:288
	scratch_load_dwordx2 v[12:13], off, off offset:296
	s_waitcnt vmcnt(0)
	v_pk_fma_f32 v[8:9], v[58:59], v[8:9], v[12:13] op_sel_hi:[0,1,1]
	v_pk_fma_f32 v[12:13], v[58:59], v[12:13], v[6:7] op_sel_hi:[0,1,1]
	scratch_store_dwordx2 off, v[8:9], off offset:248
	scratch_store_dwordx2 off, v[12:13], off offset:296
	v_mov_b64_e32 v[12:13], v[16:17]
	v_mov_b32_e32 v8, v10
	v_mov_b32_e32 v9, v11
	v_mov_b32_e32 v6, v50
	v_mov_b32_e32 v7, v51
	s_cbranch_scc0 .LBB0_2
	scratch_store_dwordx2 off, v[62:63], off offset:448
	scratch_store_dwordx2 off, v[36:37], off offset:440
	scratch_store_dwordx2 off, v[4:5], off offset:8
	scratch_store_dwordx2 off, v[56:57], off offset:432
	scratch_store_dwordx2 off, v[54:55], off offset:424
	scratch_store_dwordx2 off, v[48:49], off offset:416
	scratch_store_dwordx2 off, v[46:47], off offset:408
	scratch_store_dwordx2 off, v[44:45], off offset:400
	scratch_store_dwordx2 off, v[32:33], off offset:392
	scratch_store_dwordx2 off, v[40:41], off
	scratch_store_dwordx2 off, v[38:39], off offset:480
	scratch_store_dwordx2 off, v[30:31], off offset:472
	scratch_store_dwordx2 off, v[28:29], off offset:384
	scratch_store_dwordx2 off, v[26:27], off offset:376
	scratch_store_dwordx2 off, v[22:23], off offset:368
	scratch_store_dwordx2 off, v[42:43], off offset:352
	scratch_store_dwordx2 off, v[50:51], off offset:456
	scratch_store_dwordx2 off, v[10:11], off offset:464
	scratch_load_dwordx2 v[48:49], off, off offset:208
	scratch_load_dwordx2 v[56:57], off, off offset:216
	scratch_load_dwordx2 v[2:3], off, off offset:224
	scratch_load_dwordx2 v[16:17], off, off offset:232
	scratch_load_dwordx2 v[8:9], off, off offset:344
	scratch_load_dwordx2 v[36:37], off, off offset:280
	scratch_load_dwordx2 v[42:43], off, off offset:312
	scratch_load_dwordx2 v[44:45], off, off offset:320
	scratch_load_dwordx2 v[46:47], off, off offset:328
	scratch_load_dwordx2 v[62:63], off, off offset:240
	scratch_load_dwordx2 v[30:31], off, off offset:288
	scratch_load_dwordx2 v[10:11], off, off offset:248
	scratch_load_dwordx2 v[58:59], off, off offset:296
	scratch_load_dwordx2 v[50:51], off, off offset:256
	scratch_load_dwordx2 v[22:23], off, off offset:264
	scratch_load_dwordx2 v[26:27], off, off offset:304
	scratch_load_dwordx2 v[54:55], off, off offset:272
	scratch_load_dwordx2 v[34:35], off, off offset:336
	scratch_load_dwordx2 v[60:61], off, off offset:488
	v_mov_b64_e32 v[52:53], v[20:21]
	scratch_store_dwordx2 off, v[14:15], off offset:360
	v_mov_b64_e32 v[18:19], v[12:13]
	s_branch .LBB0_5
.LBB0_4:
	v_mov_b64_e32 v[8:9], v[28:29]
	scratch_store_dwordx2 off, v[14:15], off offset:360
.LBB0_5:
	scratch_load_dwordx2 v[32:33], off, off offset:64
	s_waitcnt vmcnt(2)
	v_lshlrev_b32_e32 v4, 2, v60
	v_mov_b64_e32 v[14:15], v[56:57]
	v_mov_b64_e32 v[40:41], v[2:3]
	v_mov_b64_e32 v[12:13], v[16:17]
	v_mov_b32_e32 v5, 0
	s_movk_i32 s0, 0x2000
	scratch_load_dwordx2 v[6:7], off, off offset:352
	scratch_load_dwordx2 v[0:1], off, off offset:152
	scratch_load_dwordx2 v[28:29], off, off offset:472
	s_waitcnt vmcnt(3)
	global_store_dword v4, v33, s[4:5] offset:256
	global_store_dword v4, v32, s[4:5] offset:512
	scratch_load_dwordx2 v[32:33], off, off offset:56
	s_waitcnt vmcnt(0)
	global_store_dword v4, v33, s[4:5] offset:768
	global_store_dword v4, v32, s[4:5] offset:1024
	scratch_load_dwordx2 v[32:33], off, off offset:48
	s_nop 0
	scratch_load_dwordx2 v[56:57], off, off offset:480
	s_waitcnt vmcnt(1)
	global_store_dword v4, v33, s[4:5] offset:1280
	global_store_dword v4, v32, s[4:5] offset:1536
	global_store_dword v4, v18, s[4:5]
	global_store_dword v4, v19, s[4:5] offset:1792
	scratch_load_dwordx2 v[18:19], off, off
	s_nop 0
	scratch_load_dwordx2 v[2:3], off, off offset:184
	s_waitcnt vmcnt(1)
	global_store_dword v4, v19, s[4:5] offset:2048
	global_store_dword v4, v18, s[4:5] offset:2304
	scratch_load_dwordx2 v[18:19], off, off offset:40
	s_nop 0
	scratch_load_dwordx2 v[16:17], off, off offset:192
	s_waitcnt vmcnt(1)
	global_store_dword v4, v19, s[4:5] offset:2560
	global_store_dword v4, v18, s[4:5] offset:2816
	global_store_dword v4, v35, s[4:5] offset:3072
	global_store_dword v4, v34, s[4:5] offset:3328
	s_waitcnt vmcnt(4)
	global_store_dword v4, v17, s[4:5] offset:3584
	global_store_dword v4, v3, s[4:5] offset:3840
	v_lshl_add_u64 v[4:5], s[4:5], 0, v[4:5]
	v_add_co_u32_e32 v32, vcc, s0, v4
	s_movk_i32 s0, 0x1000
	s_nop 0
	v_addc_co_u32_e32 v33, vcc, 0, v5, vcc
	global_store_dword v[32:33], v2, off offset:-4096
	scratch_load_dwordx2 v[2:3], off, off offset:200
	v_add_co_u32_e32 v34, vcc, s0, v4
	s_movk_i32 s0, 0x3000
	s_nop 0
	v_addc_co_u32_e32 v35, vcc, 0, v5, vcc
	global_store_dword v[34:35], v51, off offset:256
	global_store_dword v[34:35], v50, off offset:512
	global_store_dword v[34:35], v31, off offset:768
	global_store_dword v[34:35], v30, off offset:1024
	global_store_dword v[34:35], v16, off offset:1280
	global_store_dword v[34:35], v23, off offset:1536
	global_store_dword v[34:35], v22, off offset:1792
	global_store_dword v[34:35], v25, off offset:2048
	global_store_dword v[34:35], v24, off offset:2304
	global_store_dword v[34:35], v11, off offset:2560
	global_store_dword v[34:35], v10, off offset:2816
	global_store_dword v[34:35], v27, off offset:3328
	global_store_dword v[34:35], v26, off offset:3584
	scratch_load_dwordx2 v[16:17], off, off offset:16
	s_nop 0
	global_store_dword v[32:33], v57, off offset:2560
	global_store_dword v[32:33], v56, off offset:2816
	s_waitcnt vmcnt(16)
	global_store_dword v[34:35], v3, off offset:3072
	global_store_dword v[34:35], v63, off offset:3840
	global_store_dword v[32:33], v62, off
	global_store_dword v[32:33], v59, off offset:256
	global_store_dword v[32:33], v58, off offset:512
	global_store_dword v[32:33], v2, off offset:768
	global_store_dword v[32:33], v53, off offset:1024
	global_store_dword v[32:33], v52, off offset:1280
	scratch_load_dwordx2 v[2:3], off, off offset:464
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v3, off offset:1536
	global_store_dword v[32:33], v2, off offset:1792
	scratch_load_dwordx2 v[2:3], off, off offset:456
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v3, off offset:2048
	global_store_dword v[32:33], v2, off offset:2304
	scratch_load_dwordx2 v[2:3], off, off offset:384
	s_nop 0
	scratch_load_dwordx2 v[18:19], off, off offset:376
	s_waitcnt vmcnt(1)
	global_store_dword v[32:33], v3, off offset:3584
	global_store_dword v[32:33], v2, off offset:3840
	v_add_co_u32_e32 v2, vcc, s0, v4
	s_movk_i32 s0, 0x4000
	s_nop 0
	v_addc_co_u32_e32 v3, vcc, 0, v5, vcc
	global_store_dword v[2:3], v17, off offset:1024
	global_store_dword v[2:3], v16, off offset:1280
	scratch_load_dwordx2 v[16:17], off, off offset:32
	s_nop 0
	global_store_dword v[32:33], v29, off offset:3072
	global_store_dword v[32:33], v28, off offset:3328
	s_waitcnt vmcnt(2)
	global_store_dword v[2:3], v17, off offset:1536
	global_store_dword v[2:3], v16, off offset:1792
	scratch_load_dwordx2 v[16:17], off, off offset:24
	s_nop 0
	global_store_dword v[2:3], v19, off offset:512
	global_store_dword v[2:3], v18, off offset:768
	s_waitcnt vmcnt(2)
	global_store_dword v[2:3], v17, off offset:2048
	global_store_dword v[2:3], v16, off offset:2304
	scratch_load_dwordx2 v[16:17], off, off offset:368
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v17, off offset:2560
	global_store_dword v[2:3], v16, off offset:2816
	global_store_dword v[2:3], v7, off offset:3072
	global_store_dword v[2:3], v6, off offset:3328
	global_store_dword v[2:3], v55, off offset:3584
	global_store_dword v[2:3], v54, off offset:3840
	scratch_load_dwordx2 v[6:7], off, off offset:360
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v6, off offset:256
	v_add_co_u32_e32 v2, vcc, s0, v4
	s_movk_i32 s0, 0x5000
	s_nop 0
	v_addc_co_u32_e32 v3, vcc, 0, v5, vcc
	global_store_dword v[2:3], v7, off offset:-4096
	scratch_load_dwordx2 v[6:7], off, off offset:176
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v7, off
	global_store_dword v[2:3], v6, off offset:256
	global_store_dword v[2:3], v47, off offset:512
	global_store_dword v[2:3], v46, off offset:768
	global_store_dword v[2:3], v45, off offset:1024
	global_store_dword v[2:3], v44, off offset:1280
	global_store_dword v[2:3], v43, off offset:1536
	global_store_dword v[2:3], v42, off offset:1792
	global_store_dword v[2:3], v37, off offset:2048
	global_store_dword v[2:3], v36, off offset:2304
	global_store_dword v[2:3], v9, off offset:2560
	global_store_dword v[2:3], v8, off offset:2816
	global_store_dword v[2:3], v13, off offset:3072
	global_store_dword v[2:3], v12, off offset:3328
	scratch_load_dwordx2 v[6:7], off, off offset:168
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v7, off offset:3584
	global_store_dword v[2:3], v6, off offset:3840
	scratch_load_dwordx2 v[6:7], off, off offset:160
	v_add_co_u32_e32 v2, vcc, s0, v4
	s_movk_i32 s0, 0x6000
	s_nop 0
	v_addc_co_u32_e32 v3, vcc, 0, v5, vcc
	v_add_co_u32_e32 v32, vcc, s0, v4
	s_movk_i32 s0, 0x7000
	s_nop 0
	v_addc_co_u32_e32 v33, vcc, 0, v5, vcc
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v7, off offset:-4096
	global_store_dword v[2:3], v6, off offset:256
	global_store_dword v[2:3], v1, off offset:512
	global_store_dword v[2:3], v0, off offset:768
	global_store_dword v[2:3], v41, off offset:1024
	global_store_dword v[2:3], v40, off offset:1280
	global_store_dword v[2:3], v15, off offset:1536
	global_store_dword v[2:3], v14, off offset:1792
	global_store_dword v[2:3], v49, off offset:2048
	global_store_dword v[2:3], v48, off offset:2304
	scratch_load_dwordx2 v[0:1], off, off offset:96
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v1, off offset:2560
	global_store_dword v[2:3], v0, off offset:2816
	scratch_load_dwordx2 v[0:1], off, off offset:416
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v1, off offset:3072
	global_store_dword v[2:3], v0, off offset:3328
	scratch_load_dwordx2 v[0:1], off, off offset:408
	s_waitcnt vmcnt(0)
	global_store_dword v[2:3], v1, off offset:3584
	global_store_dword v[2:3], v0, off offset:3840
	scratch_load_dwordx2 v[0:1], off, off offset:144
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off
	global_store_dword v[32:33], v0, off offset:256
	scratch_load_dwordx2 v[0:1], off, off offset:136
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off offset:512
	global_store_dword v[32:33], v0, off offset:768
	scratch_load_dwordx2 v[0:1], off, off offset:128
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off offset:1024
	global_store_dword v[32:33], v0, off offset:1280
	scratch_load_dwordx2 v[0:1], off, off offset:120
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off offset:1536
	global_store_dword v[32:33], v0, off offset:1792
	scratch_load_dwordx2 v[0:1], off, off offset:112
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off offset:2048
	global_store_dword v[32:33], v0, off offset:2304
	scratch_load_dwordx2 v[0:1], off, off offset:104
	s_nop 0
	scratch_load_dwordx2 v[2:3], off, off offset:400
	s_waitcnt vmcnt(1)
	global_store_dword v[32:33], v1, off offset:2560
	global_store_dword v[32:33], v0, off offset:2816
	scratch_load_dwordx2 v[0:1], off, off offset:448
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off offset:3072
	global_store_dword v[32:33], v0, off offset:3328
	scratch_load_dwordx2 v[0:1], off, off offset:440
	s_waitcnt vmcnt(0)
	global_store_dword v[32:33], v1, off offset:3584
	global_store_dword v[32:33], v0, off offset:3840
	v_add_co_u32_e32 v0, vcc, s0, v4
	s_nop 1
	v_addc_co_u32_e32 v1, vcc, 0, v5, vcc
	global_store_dword v[0:1], v3, off
	global_store_dword v[0:1], v2, off offset:256
	scratch_load_dwordx2 v[2:3], off, off offset:392
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:512
	global_store_dword v[0:1], v2, off offset:768
	scratch_load_dwordx2 v[2:3], off, off offset:88
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:1024
	global_store_dword v[0:1], v2, off offset:1280
	scratch_load_dwordx2 v[2:3], off, off offset:80
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:1536
	global_store_dword v[0:1], v2, off offset:1792
	scratch_load_dwordx2 v[2:3], off, off offset:72
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:2048
	global_store_dword v[0:1], v2, off offset:2304
	scratch_load_dwordx2 v[2:3], off, off offset:8
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:2560
	global_store_dword v[0:1], v2, off offset:2816
	scratch_load_dwordx2 v[2:3], off, off offset:432
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:3072
	global_store_dword v[0:1], v2, off offset:3328
	scratch_load_dwordx2 v[2:3], off, off offset:424
	s_waitcnt vmcnt(0)
	global_store_dword v[0:1], v3, off offset:3584
	global_store_dword v[0:1], v2, off offset:3840
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
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .offset:         16
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 20
    .max_flat_workgroup_size: 64
    .name:           spill
    .private_segment_fixed_size: 500
    .sgpr_count:     14
    .sgpr_spill_count: 0
    .symbol:         spill.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     64
    .vgpr_spill_count: 254
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx950
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
